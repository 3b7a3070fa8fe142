package handler_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

func Example() {
	store, err := memory.New(memory.Config{}) // for limits per instance; upstash.FromEnv or dynamo.FromEnv for all
	if err != nil {
		panic(err)
	}
	guard, err := handler.New(handler.Config{
		Store:    store,
		ClientIP: handler.Direct(),
		Policies: []handler.Policy{{
			Name:  "contact-form",
			Limit: stores.FixedWindow(2, 10*time.Minute),
			Key:   handler.ByIP(),
		}},
	})
	if err != nil {
		panic(err)
	}
	contact := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "thank you") })
	mux := http.NewServeMux()
	mux.Handle("POST /contact", guard.Handler(contact))

	for range 3 {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("POST", "/contact", nil))
		fmt.Printf("%d %s, Retry-After: %q\n", w.Code, w.Header().Get("RateLimit"), w.Header().Get("Retry-After"))
	}
	// Output:
	// 200 "contact-form";r=1;t=600, Retry-After: ""
	// 200 "contact-form";r=0;t=600, Retry-After: ""
	// 429 "contact-form";r=0;t=600, Retry-After: "600"
}

// An endpoint that must not tell whom it knows: the answer is always the same, and
// only the mail is limited.
func ExampleFromContext() {
	store, err := memory.New(memory.Config{})
	if err != nil {
		panic(err)
	}
	guard, err := handler.New(handler.Config{
		Store:    store,
		ClientIP: handler.Direct(),
		Policies: []handler.Policy{{
			Name:  "reset-mail",
			Limit: stores.Cooldown(15 * time.Minute),
			Key:   handler.ByHeader("X-Email").Email(),
			Mode:  handler.Signal,
		}},
	})
	if err != nil {
		panic(err)
	}
	forgot := guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v, _ := handler.FromContext(r.Context()); v.Allowed {
			fmt.Println("a mail is sent")
		}
		fmt.Fprint(w, "If we know the address, a mail is on its way.")
	}))
	for _, email := range []string{"ann@example.org", "Ann@Example.org"} {
		r := httptest.NewRequest("POST", "/forgot", nil)
		r.Header.Set("X-Email", email)
		w := httptest.NewRecorder()
		forgot.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Body)
	}
	// Output:
	// a mail is sent
	// 200 If we know the address, a mail is on its way.
	// 200 If we know the address, a mail is on its way.
}

// A job has no request: it counts by name.
func ExampleGuard_Take() {
	store, err := memory.New(memory.Config{})
	if err != nil {
		panic(err)
	}
	guard, err := handler.New(handler.Config{
		Store: store,
		Policies: []handler.Policy{{
			Name:  "newsletter",
			Limit: stores.FixedWindow(2, time.Hour),
			Key:   handler.Manual(),
		}},
	})
	if err != nil {
		panic(err)
	}
	for _, tenant := range []string{"a", "a", "a", "b"} {
		d, err := guard.Take(context.Background(), "newsletter", 1, tenant)
		if err != nil {
			panic(err)
		}
		fmt.Println(tenant, d.Allowed, d.Remaining, d.RetryAfter.Round(time.Hour))
	}
	// Output:
	// a true 1 0s
	// a true 0 0s
	// a false 0 1h0m0s
	// b true 1 0s
}
