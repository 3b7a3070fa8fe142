package failover

import (
	"time"

	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/stores"
)

// keyed is a hit with the place of what the fallback knows of its key. A fixed window
// without a block, which is what most limits are, is counted as numbers in a window;
// other limits as levels that fall with time. Both tell the same story, by the same
// methods; see there.
type keyed struct {
	byLevel bool
	window  windowed
	level   metered
}

func (f *fallback) of(hit *stores.Hit) keyed {
	l := hit.Limit
	s := shape{l.Algorithm, l.Window, l.Block}
	cost := int64(max(1, hit.Cost))
	if l.Algorithm == stores.Fixed && l.Block == 0 {
		t := f.tables.Of(s)
		return keyed{window: windowed{f, t, t.Hash(hit.Key), int64(l.Quota), cost, int64(l.Window), brought{}}}
	}
	t := f.meters.Of(s)
	rule := meter.Of(l)
	share := rule.Share(max(1, rule.Quota/f.instances))
	return keyed{byLevel: true, level: metered{f, t, t.Hash(hit.Key), rule, share, cost, brought{}}}
}

// bring has the hit bring a debt of somebody else's.
func (k *keyed) bring(owed int, until time.Duration) {
	b := brought{int64(owed), int64(until)}
	if k.byLevel {
		k.level.brought = b
	} else {
		k.window.brought = b
	}
}

func (k *keyed) send(now, due int64) (debt, <-chan struct{}, error) {
	if k.byLevel {
		return k.level.send(now, due)
	}
	return k.window.send(now, due)
}

func (k *keyed) answered(d debt, told *stores.Decision, certain, crossed bool, now, took int64) {
	if k.byLevel {
		k.level.answered(d, told, certain, crossed, now)
		return
	}
	k.window.answered(d, told, certain, crossed, now, took)
}

func (k *keyed) failed(d debt, certainlyNot bool, now int64) {
	if k.byLevel {
		k.level.failed(d, certainlyNot, now)
		return
	}
	k.window.failed(d, certainlyNot, now)
}

func (k *keyed) take(now int64, owes bool) stores.Decision {
	if k.byLevel {
		return k.level.take(now, owes)
	}
	return k.window.take(now, owes)
}

func (k *keyed) peek(now int64) stores.Decision {
	if k.byLevel {
		return k.level.peek(now)
	}
	return k.window.peek(now)
}

func (k *keyed) doubts(now int64) bool {
	if k.byLevel {
		return k.level.doubts(now)
	}
	return k.window.doubts(now)
}

func (k *keyed) charge(d *stores.Decision, now int64) {
	if k.byLevel {
		k.level.charge(d, now)
		return
	}
	k.window.charge(d, now)
}

func (k *keyed) keep(now int64) {
	if k.byLevel {
		k.level.keep(now)
		return
	}
	k.window.keep(now)
}

func (k *keyed) refund(local bool, now int64) {
	if k.byLevel {
		k.level.refund(local, now)
		return
	}
	k.window.refund(local, now)
}

func (k *keyed) reset(now int64) {
	if k.byLevel {
		k.level.reset(now)
		return
	}
	k.window.reset(now)
}

func (k *keyed) unlearn(now int64) {
	// A level that the shared store told of is kept until it tells another one.
	if !k.byLevel {
		k.window.unlearn(now)
	}
}
