package handler_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
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

// Policies may come from a file or the environment; their functions are set in code.
func ExampleParsePolicies() {
	policies, err := handler.ParsePolicies([]byte(`[
		{"name": "sender", "limit": "sliding 20/1m", "key": "ip"},
		{"name": "mailbox", "limit": "cooldown 15m", "key": "first(form:email|email,json:email|email)", "mode": "signal"}
	]`))
	if err != nil {
		panic(err)
	}
	for _, p := range policies {
		fmt.Println(p.Name, p.Limit, p.Key, p.Mode)
	}
	_, err = handler.ParsePolicies([]byte(`[{"name": "sender", "limit": 20, "key": "ip"}]`))
	fmt.Println(err)
	// Output:
	// sender sliding 20/1m ip enforce
	// mailbox 1/15m first(form:email|email,json:email|email) signal
	// handler: policies[0] "sender": invalid field "limit": a number: want a text such as "sliding 5/10m"
}

// What was counted is what the handler acts on, and a form that says it twice is
// refused.
func ExampleKeyValue() {
	store, err := memory.New(memory.Config{})
	if err != nil {
		panic(err)
	}
	guard, err := handler.New(handler.Config{
		Store:    store,
		ClientIP: handler.Direct(),
		Policies: []handler.Policy{
			{Name: "sender", Limit: stores.FixedWindow(20, time.Minute), Key: handler.ByIP()},
			{Name: "mailbox", Limit: stores.Cooldown(15 * time.Minute), Key: handler.ByForm("email").Email()},
		},
	})
	if err != nil {
		panic(err)
	}
	subscribe := guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		email, ok := handler.KeyValue(r.Context(), "email")
		fmt.Printf("%q %t\n", email, ok)
	}))
	for _, form := range []string{"email=ann%40example.org", "EMAIL=Ann%40example.org", "email=ben%40example.org&email=ann%40example.org", "name=Ann"} {
		r := httptest.NewRequest("POST", "/subscribe", strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		subscribe.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// "ann@example.org" true
	// 200
	// 429
	// 400
	// "" false
	// 200
}
