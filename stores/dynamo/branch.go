package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sallyport/sallyport/stores"
)

// guess is the branch for an open window of which nothing more is known.
func (t *taking) guess() *expression {
	// Somebody opened it, so it has most likely 1 or more.
	if branch := t.live(min(1, t.quota-1)); branch != nil {
		return branch
	}
	return &count
}

// live is the branch for an open window that holds n, or nil if the hit is refused and
// there is nothing to write. Each branch's condition checks what is concluded here,
// so that it does not matter what others write in between; and since each adds, or
// writes what is the same whoever writes it, they never wait for one another.
func (t *taking) live(n int64) *expression {
	room := t.quota - t.owed // for n, so that what is owed fits in whole
	switch {
	case n <= room-t.cost:
		return &count
	case t.owed == 0 || n >= t.quota:
		return nil
	case n <= room:
		return &pay
	}
	return &fill
}

func (t *taking) values(branch *expression, now int64, seen window) map[string]types.AttributeValue {
	room := t.quota - t.owed
	switch branch {
	case &count:
		return map[string]types.AttributeValue{":c": number(t.owed + t.cost), ":now": number(now), ":room": number(room - t.cost)}
	case &pay:
		return map[string]types.AttributeValue{":o": number(t.owed), ":now": number(now), ":room": number(room), ":short": number(max(-1, room-t.cost))}
	case &fill:
		return map[string]types.AttributeValue{":quota": number(t.quota), ":now": number(now), ":room": number(room)}
	case &shorten:
		end := now + t.window
		return map[string]types.AttributeValue{":end": number(end), ":x": timeToLive(end), ":seen": number(seen.end)}
	}
	n, _ := t.opening()
	end := now + t.until
	return map[string]types.AttributeValue{":c": number(n), ":now": number(now), ":end": number(end), ":x": timeToLive(end)}
}

// opening is what a window holds that this call opens, and whether the hit is in it.
func (t *taking) opening() (n int64, allowed bool) {
	if t.cost > t.quota-t.owed {
		return t.owed, false
	}
	return t.owed + t.cost, true
}

func timeToLive(end int64) types.AttributeValue { return number(end/1000 + 1 + ttlDelay) }

// counted reads the answer to a call whose condition held at now. What such an answer
// can't say was counted, perhaps, but is no decision.
func (t *taking) counted(a answer, branch *expression, now int64) (stores.Decision, error) {
	w, ok := readWindow(a.item)
	allowed := branch == &count
	least, most := t.owed+t.cost, t.quota
	switch branch {
	case &open:
		least, allowed = t.opening()
		most = least
		ok = ok && w.end == now+t.until
	case &pay:
		least = max(t.owed, t.quota-t.cost+1)
	case &fill:
		least = t.quota
	}
	if !ok || w.n < least || w.n > most || w.end <= now {
		return stores.Decision{}, malformed(updateItem, false)
	}
	return t.decide(w, allowed, now), nil
}

// decide words a decision about the window as it is now, and notes its end.
func (t *taking) decide(w window, allowed bool, now int64) stores.Decision {
	t.s.windows.learn(t.key, w.end)
	d := stores.Decision{Allowed: allowed, Remaining: int(max(0, t.quota-w.n)), ResetAfter: t.wait(w.end, now)}
	if !allowed && t.cost <= t.quota {
		d.RetryAfter = d.ResetAfter
	}
	return d
}
