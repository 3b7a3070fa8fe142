package webhook

import (
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// unknownWait is what a sender is told to wait when nothing is known.
const unknownWait = 5 * time.Second

// details are all that is ever said. One sentence serves all that can be wrong with a
// signature: which of them it was would help forgers only.
var details = map[int]string{
	http.StatusBadRequest:            "The body could not be read.",
	http.StatusUnauthorized:          "The delivery has no valid signature.",
	http.StatusMethodNotAllowed:      "Deliveries are made by POST.",
	http.StatusRequestTimeout:        "The body did not come in time.",
	http.StatusConflict:              "The delivery is being handled. Please try again later.",
	http.StatusRequestEntityTooLarge: "The body is too large.",
	http.StatusTooManyRequests:       "Too many deliveries without a valid signature.",
	http.StatusInternalServerError:   "The delivery could not be handled. Please try again.",
	http.StatusServiceUnavailable:    "The delivery could not be handled now. Please try again later.",
}

// answer writes a status, a Retry-After unless wait is 0, and what there is to say.
func answer(w http.ResponseWriter, status int, wait time.Duration) {
	h := w.Header()
	h["Cache-Control"] = []string{"no-store"}
	if wait > 0 || status == http.StatusConflict {
		h["Retry-After"] = []string{strconv.FormatInt(seconds(wait), 10)}
	}
	detail := details[status]
	if detail == "" {
		w.WriteHeader(status)
		return
	}
	h["Content-Type"] = []string{"application/problem+json"}
	w.WriteHeader(status)
	// There is nobody to tell of an error: the connection is gone.
	_, _ = w.Write([]byte(`{"type":"about:blank","title":"` + http.StatusText(status) + `","status":` + strconv.Itoa(status) + `,"detail":"` + detail + "\"}\n"))
}

// seconds rounds up, to at least 1, so that nobody comes back too early.
func seconds(wait time.Duration) int64 {
	return max(1, int64((wait+time.Second-1)/time.Second))
}

// tally counts what each delivery may bring about and speaks the first, the tenth, the
// hundredth time, so that a flood of deliveries is no flood of lines.
type tally struct{ n, next atomic.Uint64 }

func (t *tally) note(logger *slog.Logger, message string, attributes ...any) {
	n := t.n.Add(1)
	for {
		next := t.next.Load()
		if n < max(1, next) {
			return
		}
		if t.next.CompareAndSwap(next, max(1, next)*10) {
			break
		}
	}
	logger.Warn("sallyport: "+message, append(attributes, "times", n)...)
}

var unmade tally

func report(err error) {
	unmade.note(slog.Default(), "a webhook can't be received", "error", err)
}
