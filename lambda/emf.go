package lambda

import (
	"context"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
)

// EMF returns a function for [handler.Config].Observe that writes what a guard decides as
// metrics in CloudWatch's Embedded Metric Format, a line of JSON each, to w; nil means
// os.Stdout, from which Lambda takes them. The namespace is Sallyport.
//
// Of all requests, by FunctionName:
//
//   - Requests, the exempt ones too; of them Refused (429, 403, 413, 400), Unavailable
//     (503) and HungUp;
//   - StoreLatency in milliseconds, of requests for which a shared store was asked: up to
//     33 values for a line, the longest and others at random.
//
// Of each policy, by FunctionName and Policy:
//
//   - Allowed and Refused, in whatever mode; of the allowed ones NearLimit, with a fifth
//     or less of the quota left;
//   - Local and Remembered: who counted, if it was not the shared store; Undecided: nobody
//     did, see stores.Outage.
//
// What is zero is left out. No key, address or path is written: each would be a metric
// that CloudWatch bills, and an attacker chooses them. Of more than 100 policies the rest
// count together as "(others)".
//
// A flood of requests is no flood of lines. The requests and each policy write 20 lines
// as they are counted, and one a minute from then on, which holds all that was counted
// since; twenty quiet minutes earn the 20 back. Nothing is left out, but an instance
// that ends takes with it what it has not written. Called with the zero Verdict, the
// function writes that too:
//
//	metrics := lambda.EMF(nil)
//	lambda.Start(h, awslambda.WithEnableSIGTERM(func() { metrics(context.Background(), handler.Verdict{}) }))
//
// A line is one call of Write, outside of all locks, so w must be safe for concurrent use,
// as an *os.File is. What Write returns is ignored: a line that can't be written is lost,
// and costs no visitor an answer. The function may be shared by guards.
func EMF(w io.Writer) func(context.Context, handler.Verdict) {
	if w == nil {
		w = os.Stdout
	}
	name := lambdacontext.FunctionName
	if name == "" {
		name = "(none)" // a dimension must have a value
	}
	e := &emf{w: w, policies: map[string]*series{}}
	e.function = quoted(name)
	return e.observe
}

// maxSeries bounds what a program can take that makes guards with ever new names.
const maxSeries = 100

type emf struct {
	w        io.Writer
	function string // quoted

	mu       sync.Mutex
	requests series
	policies map[string]*series
}

func (e *emf) observe(_ context.Context, v handler.Verdict) {
	now := time.Now().UnixMilli()
	var room [4][]byte
	lines := room[:0]
	e.mu.Lock()
	if isZero(&v) {
		lines = e.rest(lines)
	} else {
		lines = e.count(lines, now, &v)
	}
	e.mu.Unlock()
	for _, line := range lines {
		_, _ = e.w.Write(line) // the documentation says so
	}
}

// isZero tells the zero Verdict from one of a guard's.
func isZero(v *handler.Verdict) bool {
	return !v.Allowed && v.Status == 0 && len(v.Outcomes) == 0 && v.Err == nil
}

// count files a Verdict and appends the lines that are due. e.mu must be held.
func (e *emf) count(lines [][]byte, now int64, v *handler.Verdict) [][]byte {
	s := &e.requests
	lines = s.begin(lines, e.function, now)
	s.counts[countRequests]++
	switch v.Status {
	case 0:
	case http.StatusServiceUnavailable:
		s.counts[countUnavailable]++
	case 499: // the guard's word for a caller who hung up
		s.counts[countHungUp]++
	default:
		s.counts[countRefused]++
	}
	if askedShared(v) {
		s.sample(v.Elapsed)
	}
	lines = s.end(lines, e.function, now)

	for i := range v.Outcomes {
		o := &v.Outcomes[i]
		s := e.of(o.Policy)
		lines = s.begin(lines, e.function, now)
		if !o.Allowed {
			s.counts[countRefused]++
		} else if s.counts[countAllowed]++; o.Source != stores.None && o.Remaining <= o.Limit.Quota/5 {
			s.counts[countNearLimit]++
		}
		switch o.Source {
		case stores.Local:
			s.counts[countLocal]++
		case stores.Remembered:
			s.counts[countRemembered]++
		case stores.None:
			s.counts[countUndecided]++
		}
		lines = s.end(lines, e.function, now)
	}
	return lines
}

// askedShared tells whether Elapsed is a shared store's time: it decided, or it kept the
// guard waiting in vain. Memory takes microseconds, which would hide it.
func askedShared(v *handler.Verdict) bool {
	for i := range v.Outcomes {
		if v.Outcomes[i].Source == stores.Shared {
			return true
		}
	}
	return v.Elapsed >= time.Millisecond
}

// of returns the series of a policy. e.mu must be held.
func (e *emf) of(policy string) *series {
	s := e.policies[policy]
	if s == nil {
		if len(e.policies) >= maxSeries {
			if policy = "(others)"; e.policies[policy] != nil {
				return e.policies[policy]
			}
		}
		s = &series{policy: quoted(policy)}
		e.policies[policy] = s
	}
	return s
}

// rest appends all that is not written yet. e.mu must be held.
func (e *emf) rest(lines [][]byte) [][]byte {
	lines = e.requests.flush(lines, e.function)
	for _, s := range e.policies {
		lines = s.flush(lines, e.function)
	}
	return lines
}
