package form

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/sallyport/sallyport/handler"
)

// Form tells people from programs. Make one with [New], for each form one, when the
// program starts: all of its tokens are told apart by it. It is safe for concurrent use.
type Form struct {
	keys             []key // the first one signs
	minFill, maxAge  time.Duration
	slack            time.Duration
	uses             *handler.Guard // by tokens
	guard, down      *handler.Guard
	captcha          Captcha
	captchaField     string
	decoy, again     http.Handler
	maxBody          int64
	class            string
	logger           *slog.Logger
	forged, clocks   tally
	bots, unanswered tally
	undecided        tally
}

// Handler returns a handler that runs next for what seems to be a person's post, and
// answers everything else itself: see the package's documentation for the order, and
// [Config] for the answers. Only POST is taken, 405 for other methods. The body is read
// once and handed on byte for byte; next reads the fields from it as if it were alone.
//
// What has arrived whole is counted and taken, though its sender has hung up meanwhile, as
// people do who close the page: the context of next's request keeps its deadline, if there
// is one, and is not cancelled earlier. So hanging up saves no hit either.
//
// Place it inside what sets CORS and security headers and what refuses cross-site
// requests. Nothing outside of it may have read the body, unless by ParseForm or
// ParseMultipartForm.
func (f *Form) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(next, w, r) })
}

func (f *Form) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "a form is sent by POST", http.StatusMethodNotAllowed)
		return
	}
	ctx, cancel := arrived(r.Context())
	defer cancel()
	v := &visit{Context: ctx, form: f}
	// The server judges by the body of the request that it made what is left on the wire,
	// and deletes the files of that one's form. So the other body is in a copy, and the
	// form comes back.
	inner := r.WithContext(v)
	defer func() { r.MultipartForm = inner.MultipartForm }()
	var sent answers
	status := f.read(w, inner, &v.posted)
	if status == 0 {
		sent, status = f.pick(&v.posted)
	}
	if status != 0 {
		// What is no form gets no further than a page of a line or two, and costs nothing.
		inner.Body = http.NoBody
		f.showTrouble(unreadable(status), w, inner)
		return
	}
	t, ok := f.parse(sent.token)
	if !ok && sent.token != "" {
		f.forged.note(f.logger, "form: tokens come that this form did not sign: from programs, or Secret differs between instances")
	}
	if !ok || sent.bot {
		f.decoy.ServeHTTP(w, inner)
		return
	}
	age, wait := f.judge(t, time.Now())
	switch {
	case age == ageYoung && t.kind == kindFirst:
		f.decoy.ServeHTTP(w, inner)
		return
	case age == ageFuture:
		f.clocks.note(f.logger, "form: tokens come from the future: the clocks of instances are more than half a second apart")
	}
	v.text, v.keep = sent.token, age == ageRight || age == ageYoung
	a := &admission{form: f, visit: v, next: next, token: t, age: age, wait: wait, captcha: sent.captcha, before: w.Header().Clone()}
	if f.guard == nil {
		a.ServeHTTP(w, inner)
		return
	}
	f.guard.Handler(a).ServeHTTP(w, inner)
}

// arrived returns the context of what has arrived whole.
func arrived(ctx context.Context) (context.Context, context.CancelFunc) {
	kept := context.WithoutCancel(ctx)
	if end, ok := ctx.Deadline(); ok {
		return context.WithDeadline(kept, end)
	}
	return kept, func() {}
}

// answers are the fields that are ours.
type answers struct {
	token, captcha string
	bot            bool // a field says so
}

// pick finds them. One that comes twice, or as a file, no browser sends.
func (f *Form) pick(p *posted) (answers, int) {
	var a answers
	var tokens, captchas int
	err := p.each(func(name string) bool {
		return name == tokenField || name == f.captchaField && f.captcha != nil || f.isHoneypot(name)
	}, func(x field) {
		switch {
		case x.file:
			a.bot = true
		case x.name == tokenField:
			a.token = x.value
			tokens++
		case f.isHoneypot(x.name):
			a.bot = a.bot || x.given
		default:
			a.captcha = x.value
			captchas++
		}
	})
	if err != nil {
		return a, http.StatusBadRequest
	}
	a.bot = a.bot || tokens != 1 || captchas > 1
	return a, 0
}
