package failover

import "sync"

// payments are the debts on their way to the shared store, the last one of each key by
// its hash. There are no more of them than requests under way.
type payments struct {
	mu   sync.Mutex
	last map[uint64]chan struct{}
}

// begin notes that a payment for the key is on its way. What it returns is closed
// when the payment has ended.
func (p *payments) begin(hash uint64) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = make(map[uint64]chan struct{})
	}
	done := make(chan struct{})
	p.last[hash] = done
	return done
}

// end wakes those who wait for the payment, whatever became of it, and tells whether it
// was the key's last: its record may have been evicted, and another payment begun.
func (p *payments) end(hash uint64, done chan struct{}) bool {
	close(done)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last[hash] != done {
		return false
	}
	delete(p.last, hash)
	return true
}

// of returns what is closed when the key's last payment has ended, or nil if none is
// on its way.
func (p *payments) of(hash uint64) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if done := p.last[hash]; done != nil {
		return done
	}
	return nil
}
