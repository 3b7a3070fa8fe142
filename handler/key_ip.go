package handler

import (
	"fmt"
	"strconv"

	"github.com/sallyport/sallyport/stores"
)

// What one client of the internet is taken to be: one IPv4 address, and the /64
// that a single IPv6 link owns (RFC 4291 section 2.5.4).
const (
	clientBits4 = 32
	clientBits6 = 64
)

// ByIP counts by the client's address, found by Config.ClientIP: an IPv4 address
// whole, an IPv6 address by its /64, because one line has 2^64 of those.
func ByIP() Key { return Key{network{clientBits4, clientBits6, true}} }

// ByNetwork counts by the network that the client's address is in: v4bits of an
// IPv4 address (1 to 32), v6bits of an IPv6 one (1 to 128). ByNetwork(24, 48)
// behind a ByIP policy holds whoever owns many networks; New reports bits that are
// out of range.
func ByNetwork(v4bits, v6bits int) Key {
	k := network{v4bits, v6bits, false}
	if v4bits < 1 || v4bits > 32 || v6bits < 1 || v6bits > 128 {
		return Key{invalid{k.String(), "want 1 to 32 bits of IPv4 and 1 to 128 of IPv6"}}
	}
	return Key{k}
}

type network struct {
	v4, v6 int
	client bool // ByIP
}

func (k network) identify(q *inquiry) bool {
	k.add(q)
	return true
}

// add appends the client's network, or what stands for it: the peer's address in a
// namespace of its own when the proxies' chain does not prove the client's, and one
// word for all when there is no address.
func (k network) add(q *inquiry) {
	addr, state := q.client()
	switch {
	case state == addrOK:
		q.id.add("ip")
		q.id.addNetwork(maskAddr(addr, k.v4, k.v6))
	case state == addrShort && addr.IsValid():
		q.guard.reports.short.note(q.guard.logger, "requests without a proven client address are counted by their peer's")
		q.id.add("short")
		q.id.addNetwork(maskAddr(addr, k.v4, k.v6))
	default:
		q.guard.reports.nobody.note(q.guard.logger, "requests without any address are counted together")
		q.id.add("nobody")
	}
}

func (k network) given(id *identity, texts []string) (bool, error) {
	if texts[0] == "" {
		return false, nil
	}
	addr, ok := parseAddr(texts[0])
	if !ok {
		// The text is not repeated: it may be anybody's address, or worse.
		return false, fmt.Errorf("%w identity: want an IP address", stores.ErrInvalid)
	}
	id.add("ip")
	id.addNetwork(maskAddr(addr, k.v4, k.v6))
	return true, nil
}

func (k network) arity() int   { return 1 }
func (k network) check() error { return nil }
func (k network) rank() rank   { return rankCaller }

func (k network) String() string {
	if k.client {
		return "ip"
	}
	return "net:" + strconv.Itoa(k.v4) + "," + strconv.Itoa(k.v6)
}

// addNone appends the identity of a request that has none of the kind that its key
// looks for.
func addNone(q *inquiry) {
	q.id.add("none")
	network{clientBits4, clientBits6, true}.add(q)
}
