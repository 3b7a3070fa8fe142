package storetest

import (
	"math"

	"github.com/sallyport/sallyport/stores"
)

var formScriptClauses = []formClause{
	{"one script of mixed steps has one meaning on every store", formScript},
}

// turn is a step of the script and the answer that every store gives: what remains of
// a window or a log, and what remains of a bucket. -1: it is not looked at.
type turn struct {
	call    string
	cost    int
	quota   int
	owed    int
	allowed bool
	counted int
	bucket  int
}

// The two differ where the quota does: a count stays, and so does a bucket's share.
var turns = []turn{
	{"Peek", 1, 10, 0, true, 10, 10},
	{"Refund", 3, 10, 0, false, 0, 0},
	{"Take", 0, 10, 0, true, 9, 9},
	{"Take", 4, 10, 0, true, 5, 5},
	{"Peek", 6, 10, 0, false, 5, 5},
	{"Peek", 5, 10, 0, true, 5, 5},
	{"Take", 6, 10, 0, false, 5, 5},
	{"Refund", 2, 10, 0, false, 0, 0},
	{"Take", 1, 20, 0, true, 16, 13},
	{"TakeOwing", 2, 20, 3, true, 11, 8},
	{"Take", 12, 20, 0, false, 11, 8},
	{"Take", 8, 20, 0, true, 3, 0},
	{"Take", 4, 20, 0, false, 3, 0},
	{"Take", 1, 10, 0, false, 0, 0},
	{"Peek", 1, 10, 0, false, 0, 0},
	{"Refund", 4, 10, 0, false, 0, 0},
	{"Take", 2, 10, 0, true, 2, 2},
	{"Take", 11, 10, 0, false, -1, -1},
	{"Peek", 2, 10, 0, true, 2, 2},
	{"TakeOwing", 1, 10, math.MaxInt, false, 0, 0},
	{"Take", 1, 10, 0, false, 0, 0},
	{"Refund", 10, 10, 0, false, 0, 0},
	{"Peek", 10, 10, 0, true, 10, 10},
	{"Take", 10, 10, 0, true, 0, 0},
	{"Take", 1, 10, 0, false, 0, 0},
	{"Reset", 1, 10, 0, false, 0, 0},
	{"TakeOwing", 5, 10, 5, true, 0, 0},
	{"Refund", 7, 10, 0, false, 0, 0},
	{"Take", 7, 10, 0, true, 0, 0},
	{"Take", 1, 5, 0, false, 0, 0},
	{"Refund", 1, 5, 0, false, 0, 0},
	{"Take", 1, 5, 0, true, 0, 0},
	{"Reset", 1, 5, 0, false, 0, 0},
	{"Take", 5, 5, 0, true, 0, 0},
}

func formScript(c *check, f form) {
	s, peeker := c.peeker()
	resetter, ok1 := s.(stores.Resetter)
	refunder, ok2 := s.(stores.Refunder)
	debtor, ok3 := s.(stores.Debtor)
	if !ok1 || !ok2 || !ok3 {
		c.Skipf("the store lacks one of Reset, Refund and TakeOwing")
	}
	key := c.hit(f, 1, long)
	for i, turn := range turns {
		h := costing(withQuota(key, turn.quota), turn.cost)
		var d stores.Decision
		switch turn.call {
		case "Take":
			d = c.take(s, h)
		case "Peek":
			d = c.peek(peeker, h)
		case "TakeOwing":
			d = c.takeOwing(debtor, h, turn.owed, long)
		case "Reset":
			c.reset(resetter, h)
			continue
		case "Refund":
			c.refund(refunder, h)
			continue
		}
		remaining := turn.counted
		if f.bucket() {
			remaining = turn.bucket
		}
		if d.Allowed != turn.allowed || remaining >= 0 && d.Remaining != remaining && d.Source != stores.Remembered {
			c.Fatalf("step %d, %s %s: %s: want it %s with %d remaining", i, turn.call, describe(h), state(d), verdict(turn.allowed), remaining)
		}
	}
}
