package failover

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

// When the breaker trips, and for how long it stays open.
const (
	tripInARow  = 5
	tripShare   = 2 // one in so many of the calls of the last ten seconds
	tripAtLeast = 20
	tripSeconds = 10

	openLeast   = time.Second
	openMost    = 5 * time.Second
	openLasting = time.Minute
)

// breaker decides whether the shared store is asked. All times are readings of the
// process clock, so that an instance that was frozen finds its time over; nothing
// happens without a request.
type breaker struct {
	mu    sync.Mutex
	state State
	// generation goes up with each change, so that the outcome of a call that began
	// in an earlier state says nothing about this one.
	generation uint64
	inARow     int
	seconds    [tripSeconds]tally
	until      int64 // Open: ends then
	probing    bool
	fault      error // what decisions say while it is not closed
	since      time.Time
	local      uint64
}

// tally counts the calls of one second.
type tally struct {
	second       int64
	good, failed uint32
}

// permit is the right to make one call, to be given back with its outcome.
type permit struct {
	generation uint64
	probe      bool
}

// outcome is what a call tells about the shared store.
type outcome uint8

const (
	neutral outcome = iota // nothing: a fault of one key, or a deadline that was cut short
	good
	failed
)

// blocked returns the fault to be told while no call may be made, else nil. It
// changes nothing.
func (b *breaker) blocked(now int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == Closed || b.state == Open && now >= b.until || b.state == HalfOpen && !b.probing {
		return nil
	}
	return b.fault
}

// admit asks for the right to make a call. The error is the fault to be told if there
// is none.
func (b *breaker) admit(now int64) (permit, *Change, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var change *Change
	switch {
	case b.state == Closed:
		return permit{generation: b.generation}, nil, nil
	case b.state == Open && now < b.until, b.state == HalfOpen && b.probing:
		return permit{}, nil, b.fault
	case b.state == Open:
		change = b.turn(HalfOpen)
	}
	b.probing = true
	return permit{generation: b.generation, probe: true}, change, nil
}

// settle takes a permit back. cause is the failure's error.
func (b *breaker) settle(p permit, o outcome, cause error, now int64) *Change {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.generation != b.generation {
		return nil
	}
	if p.probe {
		b.probing = false
	}
	if o == neutral {
		return nil
	}
	if o == good {
		b.inARow = 0
		if b.state == HalfOpen {
			b.fault, b.seconds = nil, [tripSeconds]tally{}
			change := b.turn(Closed)
			b.local = 0
			return change
		}
		b.tally(now).good++
		return nil
	}
	b.inARow++
	b.tally(now).failed++
	if b.state == Closed && !b.trips(now) {
		return nil
	}
	d := openFor(cause)
	b.until = now + int64(d)
	b.fault = fmt.Errorf("shared store not asked since it failed: %w", cause)
	if b.state == Closed {
		b.since, b.local = time.Now(), 0
	}
	change := b.turn(Open)
	change.Cause, change.For = cause, d
	return change
}

// turn changes the state. The caller has the lock.
func (b *breaker) turn(to State) *Change {
	c := &Change{From: b.state, To: to, Since: b.since, Local: b.local}
	b.state, b.probing = to, false
	b.generation++
	return c
}

// trips tells whether the failures so far open the breaker. One call alone never
// does: a first call meets a cold connection.
func (b *breaker) trips(now int64) bool {
	if b.inARow >= tripInARow {
		return true
	}
	var all, bad uint32
	first := now/int64(time.Second) - tripSeconds
	for _, t := range b.seconds {
		if t.second > first {
			all += t.good + t.failed
			bad += t.failed
		}
	}
	return all >= tripAtLeast && bad*tripShare >= all
}

func (b *breaker) tally(now int64) *tally {
	second := now / int64(time.Second)
	t := &b.seconds[second%tripSeconds]
	if t.second != second {
		*t = tally{second: second}
	}
	return t
}

// countLocal counts a decision that the shared store did not take part in.
func (b *breaker) countLocal() {
	b.mu.Lock()
	if b.state != Closed {
		b.local++
	}
	b.mu.Unlock()
}

func (b *breaker) now() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// left returns for how long the breaker stays open, 0 if it is not.
func (b *breaker) left(now int64) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != Open {
		return 0
	}
	return time.Duration(max(0, b.until-now))
}

// openFor returns for how long a failure keeps the breaker open. The spread keeps
// instances from coming back all at once.
func openFor(cause error) time.Duration {
	var f *fault.Error
	if errors.Is(cause, stores.ErrMisconfigured) || errors.As(cause, &f) && f.Lasting {
		return openLasting
	}
	return openLeast + rand.N(openMost-openLeast)
}
