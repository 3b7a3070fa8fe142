package dynamo

// A sliding window: two counters, of which the newer one's end tells where the older
// one's weight stands. What is pinned by the condition (the end, and the older
// counter) changes once in a window, so that hits never wait for one another but
// around the moment at which the windows change.
var (
	slideCount = newClaim("ADD #n :c", "#e = :seen AND #p = :p AND #n <= :room")
	slidePay   = newClaim("ADD #n :c", "#e = :seen AND #p = :p AND #n > :short AND #n <= :room")
	slideFill  = newClaim("SET #n = :full", "#e = :seen AND #p = :p AND #n > :room AND #n < :full")

	// roll makes the newer window the older one. #p comes first: the service reads
	// all right-hand sides before it writes, and not every engine does.
	roll = newClaim("SET #p = #n, #n = :c, #e = :end, #x = :x", "#e = :seen AND #n > :zero AND #n <= :most")

	// rollPaying does so where what is paid depends on what is in the older one.
	rollPaying = newClaim("SET #p = #n, #n = :c, #e = :end, #x = :x", "#e = :seen AND #n = :n")

	// begin starts anew where nothing counts any more: no window, both over, or the last
	// one over and empty.
	begin = newClaim("SET #p = :zero, #n = :c, #e = :end, #x = :x",
		"attribute_not_exists(#e) OR #e <= :gone OR #e <= :now AND #n = :zero")
)

func (t *taking) sliding(s *state, now int64) *call {
	need, length := t.need(s, now), t.rule.Window
	switch {
	case s.End > now:
		left := min(s.End-now, length) // another clock may have set the end
		c := t.join(s, now, need, t.rule.Quota-ceil(s.P*left, length), &slideCount, &slidePay, &slideFill)
		if c != nil {
			c.end, c.older = s.End, s.P
		}
		return c
	case s.N > 0 && now < s.End+length:
		return t.rolling(s, now, need)
	}
	n, hit := t.opening(need)
	if n == 0 {
		return nil
	}
	end := now + t.until
	c := t.bind(&begin, s, now, map[string]int64{":c": n, ":end": end, ":gone": now - length})
	c.hit, c.fresh, c.least, c.most, c.end, c.older = hit, true, n, n, end, 0
	return c
}

func (t *taking) rolling(s *state, now, need int64) *call {
	quota, length := t.rule.Quota, t.rule.Window
	end := s.End + length
	left := end - now
	values := map[string]int64{":seen": s.End, ":end": end}
	if t.owed == 0 {
		if need > quota {
			return nil
		}
		most := min((quota-need)*length/left, maxExact)
		if s.N > most && !s.guessed {
			return nil
		}
		values[":c"], values[":most"] = need, most
		c := t.bind(&roll, s, now, values)
		c.hit, c.least, c.most, c.end = true, need, need, end
		return c
	}
	full := quota - ceil(s.N*left, length)
	n, hit := min(t.owed, max(0, full)), false
	if n+need <= full {
		n, hit = n+need, true
	}
	if n == 0 && !s.guessed {
		return nil
	}
	values[":c"], values[":n"] = n, s.N
	if n == 0 {
		values[":n"] = anything // a guess that there is no room is no reason to write
	}
	c := t.bind(&rollPaying, s, now, values)
	c.hit, c.least, c.most, c.end, c.older = hit, n, n, end, s.N
	return c
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }
