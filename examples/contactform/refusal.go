package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/handler/form"
)

// showRefusal answers who has sent too much: the form as it was filled in, or for a
// program a problem document. The guard has set Retry-After and the rest.
func (s *site) showRefusal(w http.ResponseWriter, r *http.Request) {
	v, _ := handler.FromContext(r.Context())
	detail := "Please try again in " + words(v.RetryAfter()) + "."
	w.Header().Add("Vary", "Accept")
	if !strings.Contains(strings.ToLower(strings.Join(r.Header.Values("Accept"), ",")), "text/html") {
		wait, _ := strconv.Atoi(w.Header().Get("Retry-After"))
		writeJSON(w, v.Status, "application/problem+json", struct {
			Type     string   `json:"type"`
			Title    string   `json:"title"`
			Status   int      `json:"status"`
			Detail   string   `json:"detail"`
			Violated []string `json:"violated-policies"`
			Wait     int      `json:"retry_after"`
		}{"https://iana.org/assignments/http-problem-types#quota-exceeded", http.StatusText(v.Status), v.Status, detail, []string{"contact-form"}, wait})
		return
	}
	fields, status := readForm(w, r)
	if status != 0 {
		fields = nil
	}
	message, _ := check(fields)
	s.writeForm(w, r, v.Status, "Too many messages", message, []fault{{"", "Those were too many messages. This one has not been sent. " + detail}})
}

// words writes a wait in the largest unit that keeps two of it, rounded up.
func words(d time.Duration) string {
	for _, unit := range []struct {
		name string
		d    time.Duration
	}{{"hours", time.Hour}, {"minutes", time.Minute}} {
		if d >= 2*unit.d {
			return fmt.Sprintf("%d %s", (d+unit.d-1)/unit.d, unit.name)
		}
	}
	if d > time.Second {
		return fmt.Sprintf("%d seconds", (d+time.Second-1)/time.Second)
	}
	return "1 second"
}

// showTrouble answers a post that is no program's but can't be taken as it is: the page
// was open for too long, for instance.
func (s *site) showTrouble(w http.ResponseWriter, r *http.Request) {
	status, text := form.Trouble(r.Context())
	fields, unreadable := readForm(w, r)
	if unreadable != 0 {
		showFailure(w, r, status)
		return
	}
	message, _ := check(fields)
	s.showFaults(w, r, status, message, []fault{{"", text}})
}
