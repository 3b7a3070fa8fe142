package storetest

// formMutants are wrong in one thing each, whatever the algorithm, with the clause that
// has to notice.
var formMutants = []struct{ bug, clause string }{
	{"one hit too many", "exactly the quota passes"},
	{"counts refused costs", "a hit takes its cost, and a refused one nothing"},
	{"ignores the cost", "a hit takes its cost, and a refused one nothing"},
	{"gives a hopeless refusal a RetryAfter", "a hit takes its cost, and a refused one nothing"},
	{"counts a cost above the quota", "a hit takes its cost, and a refused one nothing"},
	{"sets a Delay", "exactly the quota passes"},
	{"Remaining goes negative", "exactly the quota passes"},
	{"RetryAfter is 0 at a refusal", "exactly the quota passes"},
	{"RetryAfter beyond the window", "exactly the quota passes"},
	{"starts anew with another quota", "another quota applies at once and keeps what was counted"},
	{"keeps the first quota", "another quota applies at once and keeps what was counted"},
	{"checks, then acts", "parallel hits pass exactly the quota"},
	{"two may open a window", "parallel hits pass exactly the quota when it is back"},
	{"never forgets", "parallel hits pass exactly the quota when it is back"},
	{"counts though the context is done", "a context that is done counts nothing"},
	{"ignores a done context", "a context that is done counts nothing"},
	{"RetryAfter is rounded down", "a hit waits as long as it is told, and no longer"},
	{"takes twice the cost", "a client slower than the limit is never refused"},
	{"Peek counts", "Peek answers as Take would and writes nothing"},
	{"Peek always allows", "Peek answers as Take would and writes nothing"},
	{"Peek tells what remains after the hit", "Peek answers as Take would and writes nothing"},
	{"Reset keeps the count", "Reset forgets the key, for all instances"},
	{"Reset heeds the cost", "Reset forgets the key, for all instances"},
	{"Reset forgets everybody", "Reset forgets the key, for all instances"},
	{"Refund gives 1 back", "Refund gives the cost back, and no more than was used"},
	{"Refund gives nothing back", "Refund gives the cost back, and no more than was used"},
	{"Refund goes below zero", "Refund gives the cost back, and no more than was used"},
	{"Refund gives 1 back", "Refund of a level above a lowered quota starts at the quota"},
	{"Refund prolongs the window", "Refund opens, moves and prolongs nothing"},
	{"Refund of a missing key is credit", "Refund opens, moves and prolongs nothing"},
	{"Refund of a missing key is credit", "Refund of what time has forgotten gives nothing"},
	{"a refund is lost when two refund at once", "parallel refunds all count"},
	{"a payment is forgotten", "TakeOwing takes what is owed, up to the quota, and then the hit"},
	{"a payment lifts the level above the quota", "TakeOwing takes what is owed, up to the quota, and then the hit"},
	{"a payment is lost with a refused hit", "TakeOwing takes what is owed, up to the quota, and then the hit"},
	{"a payment moves the end", "a payment ends after until, and moves nothing"},
	{"takes what is owed for no time", "what is owed for no time is not taken"},
	{"allows a debt below 0", "what is owed for no time is not taken"},
	{"a payment is lost when two pay at once", "parallel payments are all taken"},
	{"counts refused costs", "one script of mixed steps has one meaning on every store"},
	{"Refund gives 1 back", "one script of mixed steps has one meaning on every store"},
	{"a payment is lost with a refused hit", "one script of mixed steps has one meaning on every store"},
}

func init() {
	for _, f := range allForms[1:] {
		for _, m := range formMutants {
			mutants = append(mutants, mutant{m.bug, f.name + "/" + m.clause, build{}})
		}
	}
	for _, m := range []struct{ bug, clause string }{
		{"forgets the older window", "sliding window/a client that hammers gets the quota by the estimate, and no more"},
		{"forgets the older window", "sliding window/RetryAfter is when the estimate has room, in this window or the next"},
		{"RetryAfter is when the whole quota is back", "sliding window/RetryAfter is when the estimate has room, in this window or the next"},
		{"RetryAfter is the end of the window", "sliding window/RetryAfter is when the estimate has room, in this window or the next"},
		{"Refund takes from the older window first", "sliding window/Refund takes from the newer window first, and from the older no more than the quota has"},
		{"Refund of an older window counts from its level", "sliding window/Refund takes from the newer window first, and from the older no more than the quota has"},
		{"Refund opens a window", "sliding window/Refund opens, moves and prolongs nothing"},
		{"Refund counts from the level", "sliding window/Refund of a level above a lowered quota starts at the quota"},
		{"Refund counts from the level", "sliding log/Refund of a level above a lowered quota starts at the quota"},
		{"Refund counts from the level", "Refund/Refund of a level above a lowered quota starts at the quota"},
		{"a payment opens a whole window", "sliding window/a payment ends after until, and moves nothing"},
		{"a payment opens a whole window", "sliding log/a payment ends after until, and moves nothing"},
		{"Peek opens a window", "sliding window/Peek answers as Take would and writes nothing"},
		{"forgets the log when its oldest stamp goes", "sliding log/never more than the quota passes in any interval as long as the window"},
		{"equal stamps collapse", "sliding log/hits of one moment all count"},
		{"equal stamps collapse", "sliding log/exactly the quota passes"},
		{"RetryAfter is when the whole quota is back", "sliding log/never more than the quota passes in any interval as long as the window"},
		{"refills wholly each period", "token bucket/the capacity passes at once, and then the refill"},
		{"refills wholly each period", "token bucket/the bucket refills evenly"},
		{"RetryAfter is when the whole quota is back", "token bucket/the bucket refills evenly"},
		{"refills wholly each period", "leaky bucket/departures keep an even distance"},
		{"departures are bunched", "leaky bucket/departures keep an even distance"},
		{"departures are bunched", "leaky bucket/a burst departs one by one, and what overflows is refused"},
		{"a departure waits for itself", "leaky bucket/a burst departs one by one, and what overflows is refused"},

		{"hits prolong a block", "block/whoever exceeds the limit is refused for so long, and hits meanwhile prolong nothing"},
		{"a block ends with the window", "block/whoever exceeds the limit is refused for so long, and hits meanwhile prolong nothing"},
		{"starts no block", "block/whoever exceeds the limit is refused for so long, and hits meanwhile prolong nothing"},
		{"Remaining tells the level under a block", "block/whoever exceeds the limit is refused for so long, and hits meanwhile prolong nothing"},
		{"a block is cut to its length", "block/a block lasts at least until the hit that started it would pass"},
		{"Peek starts a block", "block/neither Peek nor a cost above the quota starts a block"},
		{"a cost above the quota starts a block", "block/neither Peek nor a cost above the quota starts a block"},
		{"Refund lifts a block", "block/neither Refund nor a payment touches a block"},
		{"a payment lifts a block", "block/neither Refund nor a payment touches a block"},
		{"Reset keeps the block", "block/Reset lifts a block"},
		{"Reset keeps the count", "block/Reset lifts a block"},
		{"hits prolong a block", "block/parallel hits pass exactly the quota and start one block"},
		{"checks, then acts", "block/parallel hits pass exactly the quota and start one block"},
		{"TakeAll starts no block", "block/a refusal in TakeAll starts a block"},

		{"TakeAll charges behind a refusal", "algorithms together/TakeAll mixes algorithms, and stops at the refusal of any"},
		{"TakeAll takes back what came before a refusal", "algorithms together/TakeAll mixes algorithms, and stops at the refusal of any"},
		{"TakeAll counts a key once", "algorithms together/TakeAll mixes algorithms, and stops at the refusal of any"},
		{"checks, then acts", "algorithms together/parallel TakeAlls of several algorithms pass exactly the quotas"},
		{"TakeAll charges behind a refusal", "algorithms together/parallel TakeAlls of several algorithms pass exactly the quotas"},
		{"checks, then acts", "parallel hits/exactly one of a hundred passes a cooldown"},
	} {
		mutants = append(mutants, mutant{m.bug, m.clause, build{}})
	}
	for _, bug := range []string{
		"one hit too many", "ignores the cost", "counts refused costs", "RetryAfter is rounded down",
		"forgets the older window", "RetryAfter is the end of the window", "RetryAfter is when the whole quota is back",
		"forgets the log when its oldest stamp goes", "equal stamps collapse", "refills wholly each period",
		"departures are bunched", "a departure waits for itself",
		"hits prolong a block", "a block ends with the window", "starts no block", "a block is cut to its length",
		"Peek starts a block", "Refund lifts a block", "Reset keeps the block", "a payment lifts a block",
		"Refund gives 1 back", "Refund prolongs the window", "Refund takes from the older window first", "Refund goes below zero",
		"a payment is forgotten", "a payment moves the end", "a payment opens a whole window", "a payment is lost with a refused hit",
		"a payment lifts the level above the quota", "starts anew with another quota", "keeps the first quota",
	} {
		mutants = append(mutants, mutant{bug, random, build{}})
	}
}

// random is the one clause that may need more than one run to meet a bug.
const random = "algorithms together/random steps by two instances are answered as the limits mean"
