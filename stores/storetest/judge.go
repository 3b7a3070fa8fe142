package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// want compares a decision with what the contract asks for. A remembered refusal
// repeats an earlier answer, so its Remaining may be older than the question.
func (c *check) want(method string, h stores.Hit, d stores.Decision, allowed bool, remaining int) {
	c.Helper()
	if d.Allowed != allowed {
		c.Fatalf("%s %s: %s: want it %s with %d remaining", method, describe(h), state(d), verdict(allowed), remaining)
	}
	if d.Remaining != remaining && d.Source != stores.Remembered {
		c.Fatalf("%s %s: %s: want %d remaining", method, describe(h), state(d), remaining)
	}
}

// judge checks what holds for every decision, whatever was counted before.
func (c *check) judge(method string, h stores.Hit, d stores.Decision) {
	c.Helper()
	if flaw := flaw(method, h, d); flaw != "" {
		c.Fatalf("%s %s: %s: %s", method, describe(h), state(d), flaw)
	}
}

func flaw(method string, h stores.Hit, d stores.Decision) string {
	cost, quota, longest := max(h.Cost, 1), h.Limit.Quota, longestWait(h.Limit)
	switch {
	case d.Source > stores.Remembered:
		return "somebody has to count: want the source shared, local or remembered"
	case d.Source == stores.Shared && d.Fault != nil:
		return fmt.Sprintf("the shared store decided, so there is no fault to report, but Fault is %v", d.Fault)
	case d.Remaining < 0:
		return "Remaining is never negative"
	case d.Remaining > quota:
		return "Remaining is never above the quota"
	case d.RetryAfter < 0 || d.ResetAfter < 0:
		return "RetryAfter and ResetAfter are never negative"
	case d.RetryAfter > longest || d.ResetAfter > longest:
		return fmt.Sprintf("RetryAfter and ResetAfter never lie beyond %v", longest)
	case d.Delay != 0 && h.Limit.Algorithm != stores.Leaky:
		return fmt.Sprintf("only a leaky bucket has a Delay, but it is %v", d.Delay)
	case d.Delay != 0 && !d.Allowed:
		return fmt.Sprintf("what is refused never departs, but Delay is %v", d.Delay)
	case d.Delay < 0 || d.Delay > longest:
		return fmt.Sprintf("Delay is never negative and never beyond %v, but it is %v", longest, d.Delay)
	case d.Allowed && cost > quota:
		return "a cost above the quota is never allowed"
	case d.Allowed && d.RetryAfter != 0:
		return "RetryAfter is 0 when allowed"
	case d.Allowed && method == "Peek" && d.Remaining < cost:
		return "Peek tells what remains before the hit, so what it allows has room"
	case d.Allowed && method != "Peek" && d.Remaining > quota-cost:
		return "the cost has to be gone from what remains"
	case !d.Allowed && cost > quota && d.RetryAfter != 0:
		return "a cost above the quota never passes, so RetryAfter is 0"
	case !d.Allowed && cost <= quota && d.RetryAfter == 0:
		return "a refusal that time can lift says when, by a RetryAfter above 0"
	case !d.Allowed && d.ResetAfter < d.RetryAfter:
		return "the whole quota is not back before this hit would pass, so ResetAfter is at least RetryAfter"
	case !d.Allowed && cost <= quota && d.Remaining >= cost:
		return "a hit for which there is room is not refused"
	case !d.Allowed && cost <= quota && h.Limit.Block > 0 && method != "Peek" && d.Source != stores.Remembered && d.Remaining != 0:
		return "nothing remains while a block is on"
	}
	return ""
}

// longestWait is what no wait exceeds: the window, or the two that a sliding limit
// looks at, or the block. The time between two units of a bucket may be rounded up.
func longestWait(l stores.Limit) time.Duration {
	longest := l.Window
	switch l.Algorithm {
	case stores.Sliding:
		longest *= 2
	case stores.Token, stores.Leaky:
		longest += time.Millisecond
	}
	return max(longest, l.Block)
}

func verdict(allowed bool) string {
	if allowed {
		return "allowed"
	}
	return "refused"
}

func state(d stores.Decision) string {
	return fmt.Sprintf("%s (%v, %d remaining, RetryAfter %v, ResetAfter %v)",
		verdict(d.Allowed), d.Source, d.Remaining, d.RetryAfter, d.ResetAfter)
}

func (c *check) wantInvalid(method string, h stores.Hit, err error) {
	c.Helper()
	if !errors.Is(err, stores.ErrInvalid) {
		c.Fatalf("%s %s: error %v: want one that wraps ErrInvalid", method, describe(h), err)
	}
}
