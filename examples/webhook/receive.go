package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// maxPayload is in bytes, after base64.
const maxPayload = 256 << 10

// Inbox is where payloads go. Put one of your own into main.go: a queue, a table. It
// should only keep the payload, because senders wait a few seconds at most. What
// it returns as did is told to the sender: say no more than was done. After an error
// the sender is asked to try again.
type Inbox interface {
	Keep(ctx context.Context, payload json.RawMessage) (did string, err error)
}

// logInbox shows that a payload came, and keeps none of it.
type logInbox struct{ logger *slog.Logger }

// Keep logs the length of the payload in bytes.
func (in logInbox) Keep(ctx context.Context, payload json.RawMessage) (string, error) {
	in.logger.InfoContext(ctx, "webhook: a payload came, and was not kept", "bytes", len(payload))
	return "The payload is JSON. Its length was logged; it was not kept.", nil
}

type receiver struct{ inbox Inbox }

// receive answers what the guard let through. A refusal of ours is an answer too: an
// error would be a 500 without a word, and a reason to count the function as broken.
func (rc receiver) receive(ctx context.Context, event events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	if event.RequestContext.HTTP.Method != http.MethodPost {
		response := problem(http.StatusMethodNotAllowed, "Payloads are sent by POST.")
		response.Headers["allow"] = http.MethodPost
		return response, nil
	}
	if !isJSON(event.Headers["content-type"]) { // an HTTP API sends names in lower case
		return problem(http.StatusUnsupportedMediaType, "The content type has to be application/json."), nil
	}
	payload, status := payloadOf(event)
	switch status {
	case http.StatusRequestEntityTooLarge:
		return problem(status, "A payload has at most 262144 bytes."), nil
	case http.StatusBadRequest:
		return problem(status, "The body is no valid JSON."), nil
	}
	did, err := rc.inbox.Keep(ctx, payload)
	if err != nil {
		// Not why: that is for the log of whoever owns the inbox.
		slog.ErrorContext(ctx, "webhook: a payload could not be kept")
		return problem(http.StatusServiceUnavailable, "The payload could not be kept. Please send it again."), nil
	}
	return answer(http.StatusAccepted, "application/json", map[string]any{
		"status": "accepted",
		"bytes":  len(payload),
		"detail": did,
	}), nil
}

// isJSON takes application/json and what builds on it, such as
// application/cloudevents+json.
func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json"))
}

// payloadOf returns the body byte for byte, or the status that says why it can't.
func payloadOf(event events.APIGatewayV2HTTPRequest) (payload json.RawMessage, status int) {
	body := event.Body
	if event.IsBase64Encoded {
		decoded, err := base64.StdEncoding.DecodeString(body)
		if err != nil {
			return nil, http.StatusBadRequest
		}
		body = string(decoded)
	}
	if len(body) > maxPayload {
		return nil, http.StatusRequestEntityTooLarge
	}
	// json.Valid looks at the grammar alone, and JSON is UTF-8 (RFC 8259 section 8.1).
	if payload = json.RawMessage(body); !utf8.ValidString(body) || !json.Valid(payload) {
		return nil, http.StatusBadRequest
	}
	return payload, 0
}

// problem is an answer with a problem document (RFC 9457).
func problem(status int, detail string) events.APIGatewayV2HTTPResponse {
	return answer(status, "application/problem+json", map[string]any{
		"title":  http.StatusText(status),
		"status": status,
		"detail": detail,
	})
}

func answer(status int, contentType string, body map[string]any) events.APIGatewayV2HTTPResponse {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // of strings and numbers, it does not fail
	}
	return events.APIGatewayV2HTTPResponse{
		StatusCode: status,
		Headers: map[string]string{
			"content-type":           contentType,
			"cache-control":          "no-store",
			"x-content-type-options": "nosniff",
		},
		Body: string(text),
	}
}
