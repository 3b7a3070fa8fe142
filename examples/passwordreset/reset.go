package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/sallyport/sallyport/handler"
)

const (
	// answerTime is after how long an address is answered about. It has to be longer than
	// accounts, mailer and store take on a bad day.
	answerTime = time.Second

	// maxBody is in bytes: an address and its field's name, percent-encoded.
	maxBody = 4 << 10
)

type arrivalKey struct{}

// arrival notes when a request came. It stands outside of the guard, because the time
// that a store takes is part of what a stranger can measure.
func arrival(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), arrivalKey{}, time.Now())))
	})
}

// reset answers POST /reset. Nothing that depends on whether there is an account, or on
// whether it had a mail, changes the answer or its time.
func (s *site) reset(w http.ResponseWriter, r *http.Request) {
	// The value that was counted, and no other reading of the body.
	typed, _ := handler.KeyValue(r.Context(), "email")
	address := strings.TrimSpace(typed)
	if !isAddress(address) {
		writePage(w, http.StatusUnprocessableEntity, "Please enter an e-mail address such as name@example.com.")
		return
	}
	verdict, _ := handler.FromContext(r.Context())

	// If the store was slow, accounts and mailer still get half of their time.
	arrived, _ := r.Context().Value(arrivalKey{}).(time.Time)
	end := arrived.Add(s.floor)
	if least := time.Now().Add(s.floor / 2); least.After(end) {
		end = least
	}
	// What was counted is to be sent, also if the visitor leaves meanwhile.
	ctx, cancel := context.WithDeadline(context.WithoutCancel(r.Context()), end)
	defer cancel()
	s.send(ctx, address, verdict.Allowed)

	// Who has left is not waited for: hanging up must hold nothing here.
	wait := time.NewTimer(time.Until(end))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-r.Context().Done():
		return
	}
	writePage(w, http.StatusOK, "If there is an account for this address, a mail is on its way to it. "+
		"If none comes, look into the spam folder, or ask again in 15 minutes.")
}

// send does the same for every address, up to the last step. It returns nothing: there
// is nothing that the answer may depend on.
func (s *site) send(ctx context.Context, address string, allowed bool) {
	// A panic would cut the connection, and only where there is an account.
	defer func() {
		if recover() != nil {
			s.trouble.note("a panic of Accounts or Mailer")
		}
	}()
	mailbox, err := s.accounts.Find(ctx, address)
	if err != nil {
		// Not why: the error may quote the address.
		s.trouble.note("accounts can't be looked up")
		return
	}
	m := Mail{To: mailbox, Token: newToken()}
	if mailbox == "" || !allowed {
		return
	}
	// A mail that fails uses up the cooldown all the same. It may have gone out, and
	// whoever finds that mail fails could have it tried without a limit.
	if err := s.mailer.Send(ctx, m); err != nil {
		s.trouble.note("mails can't be sent")
		return
	}
	s.trouble.over()
}

func newToken() string {
	token := make([]byte, 32)
	_, _ = rand.Read(token) // it never fails
	return base64.RawURLEncoding.EncodeToString(token)
}
