package dynamo

import "github.com/sallyport/sallyport/stores"

// A bucket, by the one time at which it is whole again (GCRA, ITU-T I.371). A level
// is a time here too: how far that lies ahead.
var (
	pour     = newClaim("ADD #t :c SET #x = :x", "#t > :now AND #t <= :room")
	pourPay  = newClaim("ADD #t :c SET #x = :x", "#t > :short AND #t <= :room")
	pourFull = newClaim("SET #t = :full, #x = :x", "#t > :room AND #t < :full")
	start    = newClaim("SET #t = :t, #x = :x", "attribute_not_exists(#t) OR #t <= :now")
)

func (t *taking) bucket(s *state, now int64) *call {
	r, need := &t.rule, t.need(s, now)
	if s.End <= now {
		n, hit := t.opening(need)
		if n == 0 {
			return nil
		}
		whole := now + n*r.Emission
		c := t.bind(&start, s, now, map[string]int64{":t": whole})
		c.hit, c.fresh, c.least, c.most = hit, true, whole, whole
		return c
	}
	owed, cost, full := t.owed*r.Emission, need*r.Emission, now+r.Burst
	values := map[string]int64{":full": full}
	var c *call
	switch t.step(s, s.End-now, r.Burst, owed, cost) {
	case both:
		values[":c"], values[":room"] = owed+cost, full-owed-cost
		c = t.bind(&pour, s, now, values)
		c.hit, c.least, c.most = true, now+owed+cost, full
	case owedAlone:
		values[":c"], values[":room"], values[":short"] = owed, full-owed, max(now, full-owed-cost)
		c = t.bind(&pourPay, s, now, values)
		c.least, c.most = max(now+owed, full-cost+1), full
	case owedInPart:
		values[":room"] = full - owed
		c = t.bind(&pourFull, s, now, values)
		c.least, c.most = full, full
	}
	return c
}

// delay is how long an event that was let into a leaky bucket waits for its
// departure: until what was in it before has drained.
func (t *taking) delay(s *state, now int64) int64 {
	if t.rule.Algorithm != stores.Leaky {
		return 0
	}
	return max(0, s.End-t.cost*t.rule.Emission-now)
}
