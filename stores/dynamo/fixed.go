package dynamo

// A fixed window. Each branch's condition checks what is concluded from the item, so
// that it does not matter what others write in between; and since each adds, or
// writes what is the same whoever writes it, they never wait for one another.
var (
	// count adds a hit, and what is owed before it, to a window that is open and has room
	// for both.
	count = newClaim("ADD #n :c", "#e > :now AND #n <= :room")

	// pay adds what is owed to a window that is open and has room for it, but not for the
	// hit as well.
	pay = newClaim("ADD #n :c", "#e > :now AND #n > :short AND #n <= :room")

	// fill does so where there is room for a part of it only. What is then in the window is
	// known without a min().
	fill = newClaim("SET #n = :full", "#e > :now AND #n > :room AND #n < :full")

	// open starts a window where there is none or where it is over. Time to live
	// deletes days late, if at all, so what is over is judged here, never by the
	// item's absence.
	open = newClaim("SET #n = :c, #e = :end, #x = :x", "attribute_not_exists(#e) OR #e <= :now")
)

func (t *taking) fixed(s *state, now int64) *call {
	need := t.need(s, now)
	if s.End <= now {
		c, hit := t.opening(need)
		if c == 0 {
			return nil
		}
		end := now + t.until
		b := t.bind(&open, s, now, map[string]int64{":c": c, ":end": end})
		b.hit, b.fresh, b.least, b.most, b.end = hit, true, c, c, end
		return b
	}
	return t.join(s, now, need, t.rule.Quota, &count, &pay, &fill)
}

// opening is what a window, a bucket or a log holds that this call opens, and whether
// the hit is in it.
func (t *taking) opening(need int64) (n int64, hit bool) {
	if need > t.rule.Quota-t.owed {
		return t.owed, false
	}
	return t.owed + need, true
}

// join is the branch for a window that is open and takes full.
func (t *taking) join(s *state, now, need, full int64, count, pay, fill *claim) *call {
	room := full - t.owed
	values := map[string]int64{":full": full, ":seen": s.End, ":p": s.P}
	var c *call
	switch t.step(s, s.N, full, t.owed, need) {
	case both:
		values[":c"], values[":room"] = t.owed+need, room-need
		c = t.bind(count, s, now, values)
		c.hit, c.least, c.most = true, t.owed+need, full
	case owedAlone:
		values[":c"], values[":room"], values[":short"] = t.owed, room, max(-1, room-need)
		c = t.bind(pay, s, now, values)
		c.least, c.most = max(t.owed, full-need+1), full
	case owedInPart:
		values[":room"] = room
		c = t.bind(fill, s, now, values)
		c.least, c.most = full, full
	}
	return c
}
