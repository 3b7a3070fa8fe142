package webhook

import (
	"context"
	"net/http"
	"time"
)

// ServeHTTP answers one delivery: 200 when it was handled, now or before; 409 with
// Retry-After while it is being handled elsewhere; 500 when the handler returned an error;
// 503 with Retry-After when the marks can't be had; 401, or 429 with Retry-After, without
// a right signature; what Config.Valid says when it refuses (429); 413, 408 and 400 for a
// body that is too large, too slow or cut; 405 for anything but POST. Refusals but the
// guard's have a body of application/problem+json (RFC 9457). A panic of the handler
// passes through.
func (rc *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if rc == nil || rc.handle == nil {
		report(errNil)
		answer(w, http.StatusServiceUnavailable, unknownWait)
		return
	}
	arrived := hurry(w, r)
	if r.Method != http.MethodPost {
		w.Header()["Allow"] = []string{http.MethodPost}
		answer(w, http.StatusMethodNotAllowed, 0)
		return
	}
	body, status := rc.read(w, r)
	if status != 0 {
		answer(w, status, 0)
		return
	}
	arrived()
	now := time.Now()
	id, err := rc.scheme.Verify(r.Header, body, now)
	if err != nil {
		status, wait := rc.failures.count(r)
		answer(w, status, wait)
		return
	}
	if r.Context().Err() != nil {
		// He hung up before anything was begun, and will come again.
		answer(w, http.StatusServiceUnavailable, unknownWait)
		return
	}
	rc.deliver(w, r, newCourse(r.Context(), now), Delivery{ID: id, Header: r.Header, Body: body})
}

// deliver has a verified delivery handled, if nobody else handles it.
func (rc *Receiver) deliver(w http.ResponseWriter, r *http.Request, c course, d Delivery) {
	ctx, cancel := c.handling()
	defer cancel()
	settle := func(success bool) {}
	if rc.marks != nil && d.ID != "" {
		name := rc.marks.name(d.ID)
		what, wait, held := rc.marks.claim(ctx, name)
		settled := what == done
		settle = func(success bool) {
			if settled {
				return
			}
			settled = true
			after, cancel := c.finishing()
			defer cancel()
			if success {
				rc.marks.finish(after, name)
			} else if held && c.ours() {
				rc.marks.release(after, name)
			}
		}
		// Also for what Valid refuses, and for a panic, which passes.
		defer func() { settle(false) }()
		switch what {
		case done:
			answer(w, http.StatusOK, 0)
			return
		case busy:
			answer(w, http.StatusConflict, wait)
			return
		case undecided:
			answer(w, http.StatusServiceUnavailable, max(wait, time.Second))
			return
		}
	}
	run := func(w http.ResponseWriter, ctx context.Context) {
		status := http.StatusOK
		if rc.handle(ctx, d) != nil {
			status = http.StatusInternalServerError
		}
		// Before the answer, on which the sender may come again at once.
		settle(status == http.StatusOK)
		answer(w, status, 0)
	}
	if rc.valid == nil {
		run(w, ctx)
		return
	}
	// The body is whole again for keys that are read from it.
	rc.valid.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		run(w, r.Context())
	})).ServeHTTP(w, withBody(r.WithContext(ctx), d.Body))
}
