package upstash

import (
	"fmt"
	"time"

	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/stores"
)

// The steps of the script.
const (
	take   = "take"
	refund = "refund"
	peek   = "peek"
)

// The ways in which the script counts that are asked for by name here.
const counter = "counter"

// args are what the script is told of a hit. Its numbers are below 2^53, or 2^53 for a
// cost that is above every quota. Times are in the way's unit.
type args struct {
	way         string
	unit        time.Duration
	quota, cost int64
	length      int64 // of the window
	block       int64
	emission    int64
	owed, until int64 // a debt, and when what its payment adds ends
	open        bool  // a refusal ends no chain
}

// asked is a hit about which the server is to decide.
type asked struct {
	args
	key  string
	at   int    // in its chain
	seen window // what was known before it was sent
}

// argsOf says what there is to be done for a valid hit. A cost above the quota comes as
// one that is so by 1.
//
// A fixed window without a block is a plain counter, whose end is the expiry that the
// server keeps in milliseconds. Two windows count in milliseconds too, or products with
// large quotas would not be exact in Lua.
func argsOf(hit stores.Hit) args {
	l := hit.Limit
	rule := meter.Of(l)
	a := args{
		way:      l.Algorithm.String(),
		unit:     time.Microsecond,
		quota:    rule.Quota,
		cost:     max(1, min(int64(hit.Cost), rule.Quota+1)),
		length:   rule.Window,
		block:    rule.Block,
		emission: rule.Emission,
	}
	switch {
	case l.Algorithm == stores.Fixed && l.Block == 0:
		a.way, a.unit, a.length = counter, time.Millisecond, milliseconds(l.Window)
	case l.Algorithm == stores.Sliding:
		a.unit, a.length, a.block = time.Millisecond, milliseconds(l.Window), milliseconds(l.Block)
	}
	return a
}

// owing adds a debt.
func (a *args) owing(limit stores.Limit, owed int, until time.Duration) error {
	if owed < 0 || until < 0 || until > limit.Window {
		return fmt.Errorf("%w debt: upstash: %d until %s", stores.ErrInvalid, owed, until)
	}
	if owed > 0 && until > 0 {
		a.owed, a.until = min(int64(owed), a.quota), int64((until+a.unit-1)/a.unit)
	}
	return nil
}

// never tells that nobody need be asked: the hit can't pass, and pays nothing.
func (a *args) never() bool { return a.cost > a.quota && a.owed == 0 }

// single tells that INCR can count the hit.
func (a *args) single() bool { return a.way == counter && a.cost == 1 && a.owed == 0 }

// milliseconds rounds up.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
