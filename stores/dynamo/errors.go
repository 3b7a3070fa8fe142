package dynamo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

// misconfigured are the exceptions that only a person can mend. None was counted.
var misconfigured = map[string]bool{
	"ValidationException":                 true,
	"SerializationException":              true,
	"UnknownOperationException":           true,
	"ResourceNotFoundException":           true,
	"TableNotFoundException":              true,
	"AccessDeniedException":               true,
	"AccessDenied":                        true,
	"UnrecognizedClientException":         true,
	"InvalidClientTokenId":                true,
	"MissingAuthenticationToken":          true,
	"MissingAuthenticationTokenException": true,
	"IncompleteSignature":                 true,
	"IncompleteSignatureException":        true,
	"InvalidSignatureException":           true,
	"SignatureDoesNotMatch":               true,
	"RequestTimeTooSkewed":                true,
	"ExpiredToken":                        true,
	"ExpiredTokenException":               true,
	"OptInRequired":                       true,
	"NotAuthorized":                       true,
}

// throttled are the exceptions that ask for less. A throttled write was not made.
var throttled = map[string]bool{
	"ProvisionedThroughputExceededException": true,
	"ThrottlingException":                    true,
	"Throttling":                             true,
	"RequestLimitExceeded":                   true,
	"RequestThrottled":                       true,
	"RequestThrottledException":              true,
	"TooManyRequestsException":               true,
}

// classify makes the kit's error of the SDK's. Its text holds the exception's code
// and the status, and of the server's words only what was found wrong with a request: the
// others repeat ARNs, accounts and, for signatures, the session token.
func classify(action, key string, err error, unsent, reused bool) error {
	status := statusOf(err)
	if status < 300 {
		return unanswered(action, err, unsent || neverSent(err), reused)
	}
	code := codeOf(err)
	f := &fault.Error{Kind: stores.ErrUnavailable, Cause: err, Text: fmt.Sprintf("dynamo: %s: %s (HTTP %d)", action, printable(code, 60), status)}
	switch {
	case throttled[code]:
		f.Kind, f.Definite = stores.ErrThrottled, true
		if hotKey(err) {
			f.Kind, f.KeyOnly = stores.ErrHotKey, true
		}
	case misconfigured[code]:
		f.Kind, f.Definite, f.Lasting = stores.ErrMisconfigured, true, true
		if code == "ValidationException" {
			f.KeyOnly = keyAtFault(err)
			f.Text += words(err, key)
		}
	case code == "TransactionConflictException" || code == "ReplicatedWriteConflictException":
		f.Definite, f.KeyOnly = true, true // somebody else's write to this very item
	case status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusNotFound:
		f.Kind, f.Definite, f.Lasting = stores.ErrMisconfigured, true, true // something that is no DynamoDB
	case status == http.StatusTooManyRequests:
		f.Kind, f.Definite = stores.ErrThrottled, true
	}
	return f // what is left may have been carried out: a 5xx above all
}

// unanswered is for calls that brought no answer, or only a part of one.
func unanswered(action string, err error, definite, reused bool) error {
	f := &fault.Error{Kind: stores.ErrUnavailable, Cause: err, Definite: definite}
	var canceled *smithy.CanceledError
	timedOut := errors.Is(err, context.DeadlineExceeded)
	switch {
	case definite && timedOut:
		f.Text = "dynamo: " + action + ": no connection in time"
	case definite:
		f.Text = "dynamo: " + action + ": no connection"
	case timedOut:
		f.Text = "dynamo: " + action + ": no answer in time"
	case errors.As(err, &canceled) || errors.Is(err, context.Canceled):
		f.Text = "dynamo: " + action + ": given up by the caller before an answer came"
	case beforeSending(err):
		f.Kind, f.Definite, f.Lasting = stores.ErrMisconfigured, true, true
		f.Text = "dynamo: " + action + ": the client could not make the request (credentials, region or endpoint)"
	default:
		var sending *smithyhttp.RequestSendError
		f.Stale = reused && errors.As(err, &sending)
		f.Text = "dynamo: " + action + ": the connection broke or the answer could not be read"
	}
	return f
}

// beforeSending reports that the SDK failed on its own, before it handed the request to
// an HTTP client: everything behind that point has one of these types.
func beforeSending(err error) bool {
	var operation *smithy.OperationError
	var sending *smithyhttp.RequestSendError
	var reading *smithy.DeserializationError
	return errors.As(err, &operation) && !errors.As(err, &sending) && !errors.As(err, &reading)
}

// malformed is for answers that make no sense. An item that was stored so is this key's
// trouble, and nothing was written; a success that shows such an item is the server's.
func malformed(action string, asStored bool) error {
	return &fault.Error{
		Kind: stores.ErrUnavailable, Definite: asStored, KeyOnly: asStored,
		Text: "dynamo: " + action + ": the item's attributes are missing or make no sense",
	}
}

// noItem is for engines that do not return the item of a failed condition. Without it
// no refusal could be told from an outage, and each instance would count for itself.
func noItem() error {
	return &fault.Error{
		Kind: stores.ErrMisconfigured, Definite: true, Lasting: true,
		Text: "dynamo: UpdateItem: a condition failed and the item was not returned: the engine has to support ReturnValuesOnConditionCheckFailure",
	}
}

func statusOf(err error) int {
	var answered *smithyhttp.ResponseError
	if !errors.As(err, &answered) || answered.Response == nil || answered.Response.Response == nil {
		return 0
	}
	return answered.HTTPStatusCode()
}

// hotKey reports that the throttling lies with the key's own partition. Every reason has
// to say so: one that concerns the table concerns all keys.
func hotKey(err error) bool {
	var reasons []types.ThrottlingReason
	var provisioned *types.ProvisionedThroughputExceededException
	var throttling *types.ThrottlingException
	var limit *types.RequestLimitExceeded
	switch {
	case errors.As(err, &provisioned):
		reasons = provisioned.ThrottlingReasons
	case errors.As(err, &throttling):
		reasons = throttling.ThrottlingReasons
	case errors.As(err, &limit):
		reasons = limit.ThrottlingReasons
	}
	for _, r := range reasons {
		if r.Reason == nil || !strings.HasSuffix(*r.Reason, "KeyRangeThroughputExceeded") {
			return false
		}
	}
	return len(reasons) > 0
}

// keyAtFault reports that a ValidationException is about what the item holds, not about
// the request: an ADD to an attribute that is no number.
func keyAtFault(err error) bool {
	var answered smithy.APIError
	return errors.As(err, &answered) && strings.Contains(strings.ToLower(answered.ErrorMessage()), "incorrect data type")
}

// words returns the server's message, in bounds, unless it repeats a name.
func words(err error, key string) string {
	var answered smithy.APIError
	if !errors.As(err, &answered) {
		return ""
	}
	text := answered.ErrorMessage()
	if text == "" || strings.Contains(text, "arn:") || strings.Contains(text, key) {
		return ""
	}
	return ": " + printable(text, 160)
}

// printable returns at most limit bytes of s, with what is no printable ASCII as '?'.
func printable(s string, limit int) string {
	s = s[:min(len(s), limit)]
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return '?'
		}
		return r
	}, s)
}
