package storetest

import "github.com/sallyport/sallyport/stores"

var scriptClauses = []clause{
	{"one script of mixed steps has one meaning on every store", mixedScript},
}

// step is one call on the script's key and the answer that every store gives.
type step struct {
	call      string
	cost      int
	quota     int
	allowed   bool
	remaining int
}

// The script raises the quota only before the first refusal of a window.
var script = []step{
	{"Peek", 1, 10, true, 10},
	{"Refund", 3, 10, false, 0},
	{"Take", 0, 10, true, 9},
	{"Take", 4, 10, true, 5},
	{"Peek", 5, 10, true, 5},
	{"Peek", 6, 10, false, 5},
	{"Refund", 2, 10, false, 0},
	{"Take", 1, 12, true, 8},
	{"TakeOwing", 2, 12, true, 5}, // owes 1
	{"Take", 5, 12, true, 0},
	{"Peek", 1, 12, false, 0},
	{"Peek", 1, 20, true, 8},
	{"Take", 9, 20, false, 8},
	{"Take", 8, 20, true, 0},
	{"Take", 1, 20, false, 0},
	{"Take", 1, 12, false, 0},
	{"Refund", 5, 20, false, 0},
	{"Take", 6, 20, false, 5},
	{"Take", 21, 20, false, -1},
	{"Peek", 5, 20, true, 5},
	{"Take", 5, 20, true, 0},
	{"Reset", 1, 20, false, 0},
	{"Peek", 20, 20, true, 20},
	{"TakeOwing", 20, 20, false, 19}, // owes 1
	{"Refund", 7, 20, false, 0},
	{"Take", 20, 20, true, 0},
	{"Take", 1, 5, false, 0},
	{"Reset", 1, 5, false, 0},
	{"Take", 5, 5, true, 0},
}

func mixedScript(c *check) {
	s, peeker := c.peeker()
	resetter, ok1 := s.(stores.Resetter)
	refunder, ok2 := s.(stores.Refunder)
	debtor, ok3 := s.(stores.Debtor)
	if !ok1 || !ok2 || !ok3 {
		c.Skipf("the store lacks one of Reset, Refund and TakeOwing")
	}
	key := c.fixed(1, long)
	for i, st := range script {
		h := costing(withQuota(key, st.quota), st.cost)
		var d stores.Decision
		switch st.call {
		case "Take":
			d = c.take(s, h)
		case "Peek":
			d = c.peek(peeker, h)
		case "TakeOwing":
			d = c.takeOwing(debtor, h, 1, long)
		case "Reset":
			c.reset(resetter, h)
			continue
		case "Refund":
			c.refund(refunder, h)
			continue
		}
		if d.Allowed != st.allowed || st.remaining >= 0 && d.Remaining != st.remaining && d.Source != stores.Remembered {
			c.Fatalf("step %d, %s %s: %s: want it %s with %d remaining", i, st.call, describe(h), state(d), verdict(st.allowed), st.remaining)
		}
	}
}
