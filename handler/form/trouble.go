package form

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// trouble is why a post that is no program's can't be taken as it is.
type trouble struct {
	status int
	text   string
	wait   time.Duration // 0: none
	body   bool          // the fields can be read, and sent once more
	widget bool          // only where the captcha is
}

// 409: the state of the form is no longer what the post took it for, and who sent it
// can mend that (RFC 9110 section 15.5.10).
var (
	tooLate  = &trouble{status: http.StatusConflict, text: "This page had been open for a long time, so what you wrote has not been sent yet.", body: true}
	usedUp   = &trouble{status: http.StatusConflict, text: "This page has been used several times, so what you wrote has not been sent yet.", body: true}
	unsolved = &trouble{status: http.StatusConflict, text: "What you wrote has not been sent yet: please complete the check that you are human.", body: true, widget: true}
	notNow   = &trouble{status: http.StatusServiceUnavailable, text: "What you wrote could not be sent just now.", wait: 5 * time.Second, body: true}
)

func tooFast(wait time.Duration) *trouble {
	return &trouble{status: http.StatusConflict, text: "That was very fast, so what you wrote has not been sent yet. Please wait a moment.", wait: max(wait, 1), body: true}
}

func unreadable(status int) *trouble {
	text := "The form arrived damaged. Nothing has been sent."
	switch status {
	case http.StatusRequestEntityTooLarge:
		text = "This is more than the form takes. Nothing has been sent."
	case http.StatusUnsupportedMediaType:
		text = "Please send the fields as a form does: application/x-www-form-urlencoded or multipart/form-data."
	}
	return &trouble{status: status, text: text}
}

// Trouble tells a Config.Again handler, by the context of its request, which status the
// default page would have, and what it would tell the person, in English plain text: 409
// for a token that is too old, used up or too young, and for a captcha that was not
// solved or has expired; 503 for a captcha or a store that can't be asked; 400, 413 or
// 415 for a body that can't be read. Elsewhere it returns 0 and "".
func Trouble(ctx context.Context) (status int, text string) {
	if v := visitOf(ctx); v != nil && v.trouble != nil {
		return v.trouble.status, v.trouble.text
	}
	return 0, ""
}

// showTrouble has it told to the post whose visit is in the context. Whatever outer layers
// set for the answer stays.
func (f *Form) showTrouble(t *trouble, w http.ResponseWriter, r *http.Request) {
	visitOf(r.Context()).trouble = t
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if t.wait > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((t.wait-1)/time.Second)+1, 10))
	}
	f.again.ServeHTTP(w, r)
}
