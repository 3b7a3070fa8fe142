package upstash

import (
	"context"
	"strconv"
	"time"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

// Peek answers as [Store.Take] would at this moment, for any cost, by one exchange: for
// a fixed window without a block of two commands, GET and PTTL, and else by the script.
// It writes nothing.
func (s *Store) Peek(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	a, err := s.check(hit)
	if err != nil {
		return stores.Decision{}, err
	}
	if err := ctx.Err(); err != nil {
		return stores.Decision{}, err
	}
	if a.way != counter {
		row, err := s.askAlone(ctx, peek, hit.Key, a)
		if err != nil {
			return stores.Decision{}, err
		}
		return a.decision(row), nil
	}
	sent := s.clock.Now()
	var slots [2]slot
	if err := s.exchange(ctx, peekBody(hit.Key), slots[:]); err != nil {
		return stores.Decision{}, err
	}
	count, err := slots[0].count()
	if err != nil {
		return stores.Decision{}, err
	}
	ttl, err := slots[1].counter(-2, "PTTL")
	if err != nil {
		return stores.Decision{}, err
	}
	return peeked(count, ttl, int(a.cost), hit.Limit.Quota, a.length, time.Duration(s.clock.Now()-sent)), nil
}

// peeked judges what GET and PTTL found. They are two commands: a key that PTTL did
// not find any more is gone, whatever GET found.
func peeked(count, ttl int64, cost, quota int, ms int64, exchange time.Duration) (d stores.Decision) {
	if ttl == -2 {
		count = 0
	}
	used := int(min(count, int64(quota)))
	d.Remaining = quota - used
	d.Allowed = cost <= d.Remaining
	if used == 0 {
		return d
	}
	left := time.Duration(ms) * time.Millisecond
	if ttl >= 0 && ttl < ms {
		left = time.Duration(ttl+1) * time.Millisecond
	}
	d.ResetAfter = left
	if d.Allowed || cost > quota {
		return d
	}
	d.RetryAfter = left
	if elapsed := time.Duration(ms-min(ttl, ms)) * time.Millisecond; elapsed < exchange+time.Millisecond && ttl >= 0 {
		d.RetryAfter = time.Millisecond // the window may have opened after GET
	}
	return d
}

// count reads GET's slot: a number in a string, or null for a key that is not there.
func (s slot) count() (int64, error) {
	switch s.kind {
	case isNull:
		return 0, nil
	case isError:
		return 0, failedSlot(s.text)
	case isText:
		n, err := strconv.ParseInt(s.text, 10, 64)
		if err == nil && n >= 0 {
			return n, nil
		}
		return 0, &fault.Error{Kind: stores.ErrMisconfigured, Text: "upstash: something else uses this key: no count", KeyOnly: true}
	}
	return 0, malformed("an answer to GET that is no string")
}

// Reset forgets all that was counted under the hit's key, for all instances, by one
// DEL. Behind package failover other instances may go on refusing by memory for a
// while; see there.
func (s *Store) Reset(ctx context.Context, hit stores.Hit) error {
	if _, err := s.check(hit); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// Both before and after: a hit that is on its way must not take its count for one
	// that went backwards, and one that is answered meanwhile may have put it back.
	s.windows.forget(hit.Key)
	defer s.windows.forget(hit.Key)
	var slots [1]slot
	if err := s.exchange(ctx, resetBody(hit.Key), slots[:]); err != nil {
		return err
	}
	_, err := slots[0].counter(0, "DEL")
	return err
}
