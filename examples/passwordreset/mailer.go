package main

import (
	"context"
	"log/slog"
)

// Mail is what one who forgot a password gets.
type Mail struct {
	To    string // the mailbox that Accounts has on file
	Token string // 256 random bits for the link, in base64url
}

// Mailer hands mails over. Put one of your own into main.go: best a queue, which takes a
// mail at once and tries again by itself.
type Mailer interface {
	// Send must return when ctx ends, or the answer comes late and tells that there is an
	// account. Before it sends, it keeps the token's hash with the account, beside those
	// of older mails until they end: if the newest token ended the others, whoever asks
	// in somebody's name could make the link that he waits for worthless.
	Send(ctx context.Context, m Mail) error
}

// logMailer shows that a mail would go out. The log gets neither address nor token:
// whoever may read it could else take over accounts.
type logMailer struct{ logger *slog.Logger }

// Send implements Mailer.
func (m logMailer) Send(ctx context.Context, _ Mail) error {
	m.logger.InfoContext(ctx, "password reset: a mail would go out now")
	return nil
}
