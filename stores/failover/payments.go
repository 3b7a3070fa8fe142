package failover

import "sync"

// payments are the debts on their way to the shared store, by hash of the key. There
// are at most as many as calls may be in flight.
type payments struct {
	mu   sync.Mutex
	done map[uint64]chan struct{}
}

// begin notes that a payment for the key is on its way.
func (p *payments) begin(hash uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == nil {
		p.done = make(map[uint64]chan struct{})
	}
	if p.done[hash] == nil {
		p.done[hash] = make(chan struct{})
	}
}

// end wakes those who wait for the payment, whatever became of it.
func (p *payments) end(hash uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if done := p.done[hash]; done != nil {
		close(done)
		delete(p.done, hash)
	}
}

// of returns what is closed when the key's payment has ended, or nil if none is on
// its way.
func (p *payments) of(hash uint64) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if done := p.done[hash]; done != nil {
		return done
	}
	return nil
}
