package form

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"time"
)

// admission is what comes behind the guard, for one post.
type admission struct {
	form    *Form
	visit   *visit
	next    http.Handler
	token   token
	age     age
	wait    time.Duration
	captcha string
	before  http.Header
}

func (a *admission) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := a.form
	// The Decoy has no RateLimit fields, so what is accepted has none. A refusal has.
	clear(w.Header())
	maps.Copy(w.Header(), a.before)
	var t *trouble
	switch a.age {
	case ageYoung:
		t = tooFast(a.wait)
	case ageFuture, ageOld:
		t = tooLate
	default:
		t = a.use(r)
	}
	if t == nil && f.captcha != nil {
		if t = a.solved(w, r); t == answered {
			return
		}
	}
	if t != nil {
		f.showTrouble(t, w, r)
		return
	}
	a.next.ServeHTTP(w, r)
}

// use counts one use of the token.
func (a *admission) use(r *http.Request) *trouble {
	f, v := a.form, a.visit
	d, err := f.uses.Take(r.Context(), usesPolicy, 1, a.token.id)
	switch {
	case err != nil:
		// No decision is never a free pass.
		f.undecided.note(f.logger, "form: the store returned an error instead of a decision", "error", err)
		return notNow
	case !d.Allowed:
		v.keep = false
		return usedUp
	}
	v.keep = d.Remaining > 0
	return nil
}

// answered is the trouble of a post that has had its answer.
var answered = new(trouble)

// solved asks the captcha.
func (a *admission) solved(w http.ResponseWriter, r *http.Request) *trouble {
	f := a.form
	if a.captcha == "" {
		return unsolved
	}
	ctx, cancel := context.WithTimeout(r.Context(), captchaTime)
	err := f.captcha.Verify(ctx, a.captcha, f.client(r))
	cancel()
	switch {
	case err == nil:
		if f.unanswered.over() {
			f.logger.Info("sallyport: form: the captcha answers again")
		}
		return nil
	case errors.Is(err, ErrBot):
		f.bots.note(f.logger, "form: the captcha finds programs; if people are among them, the reason may help", "error", err)
		f.decoy.ServeHTTP(w, r)
		return answered
	case errors.Is(err, ErrStale):
		return unsolved
	}
	f.unanswered.note(f.logger, "form: the captcha could not be asked", "error", err)
	if f.down == nil {
		return notNow
	}
	f.down.Handler(&stripped{a.next, a.before}).ServeHTTP(w, r)
	return answered
}

// stripped is next without the fields that a guard has set.
type stripped struct {
	next   http.Handler
	before http.Header
}

func (s *stripped) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	clear(w.Header())
	maps.Copy(w.Header(), s.before)
	s.next.ServeHTTP(w, r)
}

// client is the address that the guard finds; without a guard nobody knows whom to
// believe.
func (f *Form) client(r *http.Request) netip.Addr {
	if f.guard == nil {
		return netip.Addr{}
	}
	return f.guard.ClientAddr(r)
}
