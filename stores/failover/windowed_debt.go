package failover

import (
	"time"

	"github.com/sallyport/sallyport/stores"
)

// send notes that the hit is asked of the shared store, and hands it the key's debt
// to pay. While an earlier hit is about to pay, it returns what to wait for: another
// one could overtake it and be let through on the same quota once more. The error
// says that the shared store must not be asked, though it could be: it may never
// know of all that was let through here, or be told of it when that window is over. (A
// payment that comes so late would open a window for what was left of the other one, and
// the next quota would follow at once.)
func (k *windowed) send(now, due int64) (d debt, wait <-chan struct{}, err error) {
	k.table.Lock()
	defer k.table.Unlock()
	if i := k.table.Find(k.hash); i >= 0 && k.table.At(i).paying > 0 {
		if wait := k.payments.of(k.hash); wait != nil {
			return debt{}, wait, nil
		}
		k.table.At(i).paying = 0
	}
	came := k.brought
	ours := came.owed == 0
	before := false
	if r, _ := k.live(now); r != nil && r.owed > 0 {
		came.until, before = 0, true
	}
	k.own(now)
	r, i := k.open(now)
	if k.doubted(r) {
		return debt{}, nil, errDoubtful
	}
	if ours && r.owed > 0 && k.table.Until(i) < due {
		return debt{}, nil, errEnding
	}
	if r.owed > 0 {
		left := time.Duration(k.table.Until(i) - now).Round(time.Millisecond)
		if !ours && came.until > 0 {
			// All that is owed is somebody else's, who knows when it ends.
			left = time.Duration(came.until)
		}
		d = debt{
			owed:   r.owed,
			until:  max(time.Millisecond, min(left, time.Duration(k.window))),
			ours:   before,
			opened: r.opened,
			done:   k.payments.begin(k.hash),
		}
		r.paying = r.owed
		k.setOwed(r, 0)
	}
	r.pending += k.cost
	k.touch(r, i)
	return d, nil, nil
}

// doubted tells whether the hit might be let through by the shared store only
// because it does not know of all that was let through here.
func (k *windowed) doubted(r *record) bool {
	return r.doubtful && k.cost > k.quota-r.used-r.pending
}

// doubts tells whether send would refuse to ask.
func (k *windowed) doubts(now int64) bool {
	k.table.Lock()
	defer k.table.Unlock()
	r, _ := k.live(now)
	return r != nil && k.doubted(r)
}

// charge takes what is owed out of what the shared store told when it was only looked
// at, as it would be taken out before a hit.
func (k *windowed) charge(d *stores.Decision, now int64) {
	k.table.Lock()
	defer k.table.Unlock()
	r, i := k.live(now)
	if r == nil || r.owed+r.paying == 0 {
		return
	}
	d.Remaining = int(max(0, int64(d.Remaining)-r.owed-r.paying))
	d.ResetAfter = max(d.ResetAfter, k.wait(k.table.Until(i)-now))
	if d.Allowed && k.cost > int64(d.Remaining) {
		d.Allowed, d.RetryAfter = false, d.ResetAfter
	}
}

// back takes back what send noted.
func (k *windowed) back(d debt) {
	last := d.owed > 0 && k.payments.end(k.hash, d.done)
	if i := k.table.Find(k.hash); i >= 0 {
		r := k.table.At(i)
		r.pending = max(0, r.pending-k.cost)
		if last {
			r.paying = 0
		}
	}
}

// failed takes back a hit that the shared store did not answer. A debt that
// certainly was not paid is owed again, if its window is not over; an uncertain one
// counts as paid, since it must not be paid twice.
func (k *windowed) failed(d debt, certainlyNot bool, now int64) {
	k.table.Lock()
	defer k.table.Unlock()
	k.back(d)
	r, _ := k.live(now)
	if r == nil || d.owed == 0 || r.opened != d.opened {
		return
	}
	if certainlyNot {
		k.setOwed(r, r.owed+d.owed)
	} else {
		r.doubtful = true
	}
}

// cropped heeds that a payment was cut at the quota, where the hit's is lower than that of
// hits before it.
func (k *windowed) cropped(d debt, now int64) {
	if !d.ours {
		return
	}
	if r, _ := k.live(now); r != nil && r.opened == d.opened && r.used > k.quota {
		r.doubtful = true
	}
}

// own adds what the hit brought. The caller has the lock.
func (k *windowed) own(now int64) {
	b := k.brought
	if k.brought = (brought{}); b.owed == 0 || b.until == 0 {
		return
	}
	r, i := k.live(now)
	if r == nil {
		r, i = k.open(now)
		k.table.SetUntil(i, now+b.until)
	}
	owed := min(b.owed, k.quota)
	r.used = min(max(r.used, k.quota), r.used+owed)
	k.setOwed(r, min(k.quota, r.owed+owed))
	k.touch(r, i)
}

// keep adds what the hit brought where nobody is asked about it.
func (k *windowed) keep(now int64) {
	if k.brought.owed == 0 {
		return
	}
	k.table.Lock()
	defer k.table.Unlock()
	k.own(now)
}
