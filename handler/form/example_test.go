package form_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/handler/form"
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
		Policies: []handler.Policy{{Name: "contact", Limit: stores.FixedWindow(5, 10*time.Minute), Key: handler.ByIP()}},
	})
	if err != nil {
		panic(err)
	}
	// The answer to a success, and to programs: they can't tell.
	thanks := http.RedirectHandler("/thanks", http.StatusSeeOther)
	f, err := form.New(form.Config{
		ID:      "contact",
		Secret:  []byte("32 random bytes, of the environment"),
		MinFill: time.Millisecond, // an example has no time; leave it out for 2 seconds
		Guard:   guard,
		Decoy:   thanks,
	})
	if err != nil {
		panic(err)
	}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "private, no-cache")
		fmt.Fprint(w, `<form method="post" action="/contact">`, f.Fields(), `<textarea name="message"></textarea><button>Send</button></form>`)
	})
	mux.Handle("POST /contact", f.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("mail:", r.PostFormValue("message"))
		thanks.ServeHTTP(w, r)
	})))

	page := httptest.NewRecorder()
	mux.ServeHTTP(page, httptest.NewRequest("GET", "/", nil))
	token := regexp.MustCompile(`name="form-token" value="([^"]+)"`).FindStringSubmatch(page.Body.String())[1]
	post := func(values url.Values) {
		r := httptest.NewRequest("POST", "/contact", strings.NewReader(values.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Location"))
	}
	honeypot := regexp.MustCompile(`subject_[0-9a-f]+`).FindString(page.Body.String())
	time.Sleep(10 * time.Millisecond)
	post(url.Values{"form-token": {token}, honeypot: {""}, "message": {"Hello"}})
	post(url.Values{"form-token": {token}, honeypot: {"pills"}, "message": {"from a program"}})
	post(url.Values{"message": {"without a token"}})
	// Output:
	// mail: Hello
	// 303 /thanks
	// 303 /thanks
	// 303 /thanks
}

// A page of one's own for people whose token is too old: the form as they filled it in.
func ExampleTrouble() {
	var f *form.Form
	show := func(w http.ResponseWriter, r *http.Request) {
		status, text := form.Trouble(r.Context())
		w.WriteHeader(status)
		fmt.Fprintf(w, `<p role="alert">%s</p>
<form method="post" action="/contact">%s
<textarea name="message">%s</textarea><button>Send</button></form>`,
			text, f.FieldsAgain(r), html.EscapeString(r.PostFormValue("message")))
	}
	f, err := form.New(form.Config{
		ID:     "contact",
		Secret: []byte("32 random bytes, of the environment"),
		Again:  http.HandlerFunc(show),
	})
	fmt.Println(f != nil, err)
	// Output: true <nil>
}

// A captcha, and what to do while it can't be asked.
func ExampleTurnstile() {
	store, err := memory.New(memory.Config{})
	if err != nil {
		panic(err)
	}
	guard, err := handler.New(handler.Config{
		Store:    store,
		ClientIP: handler.Direct(),
		Policies: []handler.Policy{{Name: "contact", Limit: stores.FixedWindow(5, 10*time.Minute), Key: handler.ByIP()}},
	})
	if err != nil {
		panic(err)
	}
	// Twenty posts an hour of all visitors together pass without a captcha.
	unasked, err := guard.With(handler.Policy{Name: "contact-without-captcha", Limit: stores.FixedWindow(20, time.Hour), Key: handler.Everyone()})
	if err != nil {
		panic(err)
	}
	captcha, err := form.Turnstile("1x0000000000000000000000000000000AA", form.Hostnames("www.example.com"))
	if err != nil {
		panic(err)
	}
	f, err := form.New(form.Config{
		ID:          "contact",
		Secret:      []byte("32 random bytes, of the environment"),
		Guard:       guard,
		Captcha:     captcha,
		CaptchaDown: unasked,
	})
	fmt.Println(f != nil, err)
	// Output: true <nil>
}
