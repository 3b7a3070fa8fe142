package sallyport_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// A contact form that takes five messages in ten minutes from one client. On memory
// alone, which is right for one instance and for tests; give Store a shared store
// where there are several.
func Example() {
	counters, err := memory.New(memory.Config{})
	if err != nil {
		log.Fatal(err)
	}
	guard, err := handler.New(handler.Config{
		Store:    counters,
		ClientIP: handler.Direct(),
		Policies: []handler.Policy{{
			Name:  "contact-form",
			Limit: stores.FixedWindow(5, 10*time.Minute),
			Key:   handler.ByIP(),
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /contact", guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "Thank you.")
	})))

	for range 6 {
		r := httptest.NewRequest("POST", "/contact", strings.NewReader("message=hello"))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		left, _, _ := strings.Cut(w.Header().Get("RateLimit"), ";t=") // t counts down
		fmt.Println(w.Code, left)
	}
	// Output:
	// 200 "contact-form";r=4
	// 200 "contact-form";r=3
	// 200 "contact-form";r=2
	// 200 "contact-form";r=1
	// 200 "contact-form";r=0
	// 429 "contact-form";r=0
}
