package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/handler/webhook"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

func Example() {
	store, err := memory.New(memory.Config{}) // upstash.FromEnv or dynamo.FromEnv where there are several instances
	if err != nil {
		panic(err)
	}
	guard, err := handler.New(handler.Config{
		Store:    store,
		ClientIP: handler.Direct(),
		Policies: []handler.Policy{{Name: "deliveries", Limit: stores.FixedWindow(600, time.Minute), Key: handler.Everyone()}},
	})
	if err != nil {
		panic(err)
	}
	const secret = "It's a Secret to Everybody"
	receiver, err := webhook.New(webhook.Config{
		Scheme: webhook.GitHub(secret),
		Valid:  guard,
		Marks:  guard,
	}, func(ctx context.Context, d webhook.Delivery) error {
		fmt.Printf("%s: %s\n", d.Header.Get("X-GitHub-Event"), d.Body)
		return nil
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/github", receiver)

	deliver := func(body, secret string) {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(body))
		r := httptest.NewRequest("POST", "/github", strings.NewReader(body))
		r.Header.Set("X-GitHub-Event", "ping")
		r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	deliver(`{"hook_id":1}`, secret)
	deliver(`{"hook_id":1}`, secret) // again, and so not handled
	deliver(`{"hook_id":2}`, "a guess")
	// Output:
	// ping: {"hook_id":1}
	// 200
	// 200
	// 401
}
