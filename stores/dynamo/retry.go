package dynamo

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
)

// resendUnsentOnly replaces the retries of whatever client is at hand for one call. The
// client's RetryMaxAttempts stays as it is: the SDK heeds it here only if it
// differs from the client's own.
func resendUnsentOnly(o *dynamodb.Options) { o.Retryer = onceMore{} }

// onceMore is an aws.RetryerV2 that allows one more attempt, at once, after one that
// certainly was not carried out. After a freeze the pooled connection is often dead, and
// this is what it costs then; everything else is for the caller to decide.
type onceMore struct{}

var _ aws.RetryerV2 = onceMore{}

func (onceMore) IsErrorRetryable(err error) bool { return neverSent(err) || outOfTime(err) }
func (onceMore) MaxAttempts() int                { return 2 }

func (onceMore) RetryDelay(int, error) (time.Duration, error) { return 0, nil }

func (onceMore) GetRetryToken(context.Context, error) (func(error) error, error) { return noToken, nil }
func (onceMore) GetAttemptToken(context.Context) (func(error) error, error)      { return noToken, nil }
func (onceMore) GetInitialToken() func(error) error                              { return noToken }

func noToken(error) error { return nil }

// neverSent reports that no whole request was on the wire: no connection, one that broke
// while the request was written, or one that had been closed before. What breaks while
// reading may have been carried out, and a timeout anywhere is the caller's own.
func neverSent(err error) bool {
	var canceled *smithy.CanceledError
	if errors.As(err, &canceled) {
		return false
	}
	var op *net.OpError
	if errors.As(err, &op) && !op.Timeout() {
		switch op.Op { // the outermost: what net/http was at
		case "dial", "proxyconnect", "write", "readfrom":
			return true
		}
		return false
	}
	var lookup *net.DNSError
	if errors.As(err, &lookup) && !lookup.Timeout() {
		return true
	}
	// net/http has no name for it but its text. It says so only if the end of the
	// connection was read before the request was begun.
	return strings.Contains(err.Error(), "server closed idle connection")
}

// outOfTime reports that the server turned the signature away and that the SDK found
// the Date header to explain it: it signs the next attempt with the server's time.
func outOfTime(err error) bool {
	var skewed interface{ RetryableError() bool }
	return errors.As(err, &skewed) && skewed.RetryableError() && signatureCodes[codeOf(err)]
}

// signatureCodes are the exceptions by which the service turns a signature away.
var signatureCodes = map[string]bool{
	"InvalidSignatureException": true,
	"SignatureDoesNotMatch":     true,
	"RequestTimeTooSkewed":      true,
}

func codeOf(err error) string {
	var answered smithy.APIError
	if !errors.As(err, &answered) {
		return ""
	}
	return answered.ErrorCode()
}
