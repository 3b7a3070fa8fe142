package lambda

import (
	"errors"

	awslambda "github.com/aws/aws-lambda-go/lambda"
)

// Start runs h as the Lambda function and does not return: it is StartWithOptions of
// github.com/aws/aws-lambda-go/lambda, here so that one package named lambda is
// enough. h is what a wrapper returned, or anything that that package takes.
func Start(h any, options ...awslambda.Option) {
	awslambda.StartWithOptions(h, options...)
}

// errNoHandler is what each invocation returns if there is nothing to run.
var errNoHandler = errors.New("lambda: the wrapped handler is nil")

// errShape is the answer to an event that is not what the wrapper is for: a
// scheduled event, a batch, a ping, or an API that is configured with another
// payload format. Nothing was counted and no store was asked.
func errShape(want string) error {
	return errors.New("lambda: the event is not " + want + "; nothing was counted")
}
