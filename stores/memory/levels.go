package memory

import (
	"sync"
	"time"

	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/internal/table"
	"github.com/sallyport/sallyport/stores"
)

// levels are the keys of one shape of limits that package meter counts: sliding windows,
// buckets, and whatever has a block. Their times are microseconds.
type levels struct {
	sync.Mutex
	*table.Table[meter.State]
	latest int64
}

func newLevels(maxKeys int) *levels { return &levels{Table: table.New[meter.State](maxKeys, nil)} }

// at returns the microsecond of a reading of the clock. Readings may come in another
// order than the lock; within a table time never goes back, so that no order
// of arrival mints a second quota.
func (l *levels) at(now int64) int64 {
	l.latest = max(l.latest, now/int64(time.Microsecond))
	return l.latest
}

// find returns the slot and the state of a key, or -1 and that of a key never seen.
// A slot whose time is over is given back.
func (l *levels) find(hash uint64, now int64) (int, meter.State) {
	i := l.Find(hash)
	if i < 0 {
		return -1, meter.State{}
	}
	if now >= l.Until(i) {
		l.Delete(i)
		return -1, meter.State{}
	}
	return i, *l.At(i)
}

func (l *levels) put(i int, rule *meter.Rule, s meter.State, now int64) {
	*l.At(i) = s
	l.SetUntil(i, rule.Until(s))
	l.Weigh(i, rule.Used(s, now), rule.Quota, now < s.Block)
}

// take pays owed, then takes the hit.
func (l *levels) take(key string, limit stores.Limit, cost, owed int64, until time.Duration, reading int64) stores.Decision {
	rule := meter.Of(limit)
	hash := l.Hash(key)
	l.Lock()
	defer l.Unlock()
	now := l.at(reading)
	i, s := l.find(hash, now)
	rule.Pay(&s, owed, ceilMicrosecond(until), now)
	a := rule.Take(&s, cost, now)
	if i < 0 && s != (meter.State{}) {
		i = l.Insert(hash, now)
	}
	if i >= 0 {
		l.put(i, &rule, s, now)
	}
	return a.Decision(stores.Local)
}

func (l *levels) peek(key string, limit stores.Limit, cost, reading int64) stores.Decision {
	rule := meter.Of(limit)
	hash := l.Hash(key)
	l.Lock()
	defer l.Unlock()
	now := l.at(reading)
	_, s := l.find(hash, now)
	return rule.Peek(s, cost, now).Decision(stores.Local)
}

func (l *levels) refund(key string, limit stores.Limit, cost, reading int64) {
	rule := meter.Of(limit)
	hash := l.Hash(key)
	l.Lock()
	defer l.Unlock()
	now := l.at(reading)
	i, s := l.find(hash, now)
	if i < 0 {
		return
	}
	rule.Refund(&s, cost, now)
	l.put(i, &rule, s, now)
}

func (l *levels) reset(key string) {
	hash := l.Hash(key)
	l.Lock()
	defer l.Unlock()
	if i := l.Find(hash); i >= 0 {
		l.Delete(i)
	}
}

func ceilMicrosecond(d time.Duration) int64 {
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}
