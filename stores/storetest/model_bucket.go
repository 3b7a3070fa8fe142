package storetest

import (
	"math/big"
	"time"
)

// bucket is a vessel that drains at an even rate: what a leaky bucket holds, or what a
// bucket of tokens lacks.
type bucket struct {
	drain *big.Rat // a nanosecond
	fill  *big.Rat // at that moment
	at    time.Duration
}

// level before the latest event is as if that had come then: a moment that is known
// between bounds only may lie there.
func (b *bucket) level(at time.Duration) *big.Rat {
	gone := new(big.Rat).SetInt64(int64(at - b.at))
	left := new(big.Rat).Sub(b.fill, gone.Mul(gone, b.drain))
	if left.Sign() < 0 {
		left.SetInt64(0)
	}
	return left
}

func (b *bucket) idle(at time.Duration) bool { return b.level(at).Sign() == 0 }

func (b *bucket) set(at time.Duration, fill *big.Rat) { b.fill, b.at = fill, at }

func (b *bucket) add(at time.Duration, cost int) {
	b.set(at, new(big.Rat).Add(b.level(at), whole(cost)))
}

func (b *bucket) refund(at time.Duration, cost, quota int) {
	level := least(b.level(at), whole(quota))
	if level.Sub(level, whole(cost)).Sign() < 0 {
		level.SetInt64(0)
	}
	b.set(at, level)
}

func (b *bucket) pay(at time.Duration, owed, quota int, _ time.Duration) {
	level := b.level(at)
	paid := least(new(big.Rat).Add(level, whole(owed)), whole(quota))
	if paid.Cmp(level) > 0 {
		b.set(at, paid)
	}
}

// requota keeps the share of the bucket that is full.
func (b *bucket) requota(at time.Duration, from, to int) {
	share := big.NewRat(int64(to), int64(from))
	b.set(at, new(big.Rat).Mul(b.level(at), share))
	b.drain = new(big.Rat).Mul(b.drain, share)
}

// departs is how long an event that comes now waits until all before it has drained.
func (b *bucket) departs(at time.Duration) time.Duration {
	wait := new(big.Rat).Quo(b.level(at), b.drain)
	return time.Duration(new(big.Int).Quo(wait.Num(), wait.Denom()).Int64())
}

func (b *bucket) edges() []time.Duration { return nil }

func (b *bucket) clone() history { return &bucket{b.drain, new(big.Rat).Set(b.fill), b.at} }

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return new(big.Rat).Set(a)
	}
	return new(big.Rat).Set(b)
}
