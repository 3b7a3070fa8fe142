package main

import (
	"context"
	"log/slog"

	"github.com/sallyport/sallyport/handler/webhook"
)

// maxBody is in bytes, after base64.
const maxBody = 256 << 10

// Inbox is where deliveries go. Put one of your own into main.go: a queue, a table. It
// should only keep the delivery, because senders wait a few seconds at most; what takes
// longer is for whoever reads the queue. After an error the sender is asked to try again.
// Each delivery is kept once, but where a process dies between keeping and marking it:
// let the delivery's ID be the key, if twice would hurt.
type Inbox interface {
	Keep(ctx context.Context, d webhook.Delivery) error
}

// logInbox shows that a delivery came, and keeps none of it.
type logInbox struct{ logger *slog.Logger }

// Keep logs the length of the body in bytes.
func (in logInbox) Keep(ctx context.Context, d webhook.Delivery) error {
	in.logger.InfoContext(ctx, "webhook: a delivery came, and was not kept", "bytes", len(d.Body))
	return nil
}

// keepIn is what the receiver runs.
func keepIn(inbox Inbox) func(context.Context, webhook.Delivery) error {
	return func(ctx context.Context, d webhook.Delivery) error {
		err := inbox.Keep(ctx, d)
		if err != nil {
			// Not why: that is for the log of whoever owns the inbox.
			slog.ErrorContext(ctx, "webhook: a delivery could not be kept")
		}
		return err
	}
}
