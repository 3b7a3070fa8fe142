package handler

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/sallyport/sallyport/stores"
)

// Key tells whose requests are counted together. Make one with ByIP, ByHeader and
// their kin; the zero Key is an error of New, and so is a bad argument. A Key is
// immutable and safe for concurrent use.
//
// A request without the identity that a key looks for is counted by its client's
// address, apart from clients who are counted by address anyway; without an address
// either it is counted with all others of that kind, and the log says so. It is
// never let through uncounted.
type Key struct{ source source }

// String returns the key as configuration writes it: "ip", "net:24,48",
// "header:X-Api-Key", "header:X-Email|email", "join(ip,route)",
// "first(header:X-Api-Key,ip)", "everyone". A key of a function is "func". The zero
// Key is "".
func (k Key) String() string {
	if k.source == nil {
		return ""
	}
	return k.source.String()
}

// source is one way to find an identity.
//
// An identity is a list of parts. The first is a word that names the kind, and the
// number of parts behind it follows from that word and the key, so that no header's
// value is ever taken for an address, nor one list for another.
type source interface {
	// identify appends the parts that q's request has to q.id. It returns false, with
	// q.id as it was, if the request has no identity of this kind.
	identify(q *inquiry) bool

	// given appends the same parts for texts that a caller of [Guard.Take] gives, as
	// many as arity says. It returns false if the texts stand for no identity.
	given(id *identity, texts []string) (bool, error)

	// arity is the number of texts that given wants; -1: any number.
	arity() int

	// check reports a bad argument of the constructor; it wraps stores.ErrInvalid.
	check() error

	// rank tells whose the key is.
	rank() rank

	String() string
}

// rank orders keys by whom they count together. Policies are best asked in this
// order: a caller who is refused then does not use up what others share.
type rank uint8

const (
	rankCaller   rank = iota // who asks
	rankTarget               // what is asked for
	rankEveryone             // all who ask, or all who ask for one route
	rankUnknown              // a function's secret
)

// identity is a list of parts, one behind the other.
type identity struct {
	text []byte
	ends []int
}

func (id *identity) reset() { id.text, id.ends = id.text[:0], id.ends[:0] }

func (id *identity) add(part string) {
	id.text = append(id.text, part...)
	id.ends = append(id.ends, len(id.text))
}

// addNetwork appends a network's text, which for a single address is the address's.
func (id *identity) addNetwork(p netip.Prefix) {
	if p.IsSingleIP() {
		id.text = p.Addr().AppendTo(id.text)
	} else {
		id.text = p.AppendTo(id.text)
	}
	id.ends = append(id.ends, len(id.text))
}

// cut takes all parts behind the first n off.
func (id *identity) cut(n int) {
	id.ends = id.ends[:n]
	id.text = id.text[:0]
	if n > 0 {
		id.text = id.text[:id.ends[n-1]]
	}
}

// invalid is a key whose constructor was given a bad argument.
type invalid struct{ text, reason string }

func (k invalid) identify(*inquiry) bool                  { return false }
func (k invalid) given(*identity, []string) (bool, error) { return false, k.check() }
func (k invalid) arity() int                              { return -1 }
func (k invalid) rank() rank                              { return rankUnknown }
func (k invalid) String() string                          { return k.text }
func (k invalid) check() error {
	return fmt.Errorf("%w key %s: %s", stores.ErrInvalid, quoted(k.text), k.reason)
}

// Everyone counts all requests together.
func Everyone() Key { return Key{everyone{}} }

type everyone struct{}

func (everyone) identify(q *inquiry) bool {
	q.id.add("everyone")
	return true
}

func (everyone) given(id *identity, _ []string) (bool, error) {
	id.add("everyone")
	return true, nil
}

func (everyone) arity() int     { return 0 }
func (everyone) check() error   { return nil }
func (everyone) rank() rank     { return rankEveryone }
func (everyone) String() string { return "everyone" }

// Manual is for policies that no request asks: only [Guard.Take] and its kin count
// by them, with whatever identity they are given, in one or several parts or none.
func Manual() Key { return Key{manual{}} }

type manual struct{}

func (manual) identify(*inquiry) bool { return false }

func (manual) given(id *identity, texts []string) (bool, error) {
	id.add("manual")
	for _, t := range texts {
		id.add(t)
	}
	return true, nil
}

func (manual) arity() int     { return -1 }
func (manual) check() error   { return nil }
func (manual) rank() rank     { return rankUnknown }
func (manual) String() string { return "manual" }

func sourceNames(keys []source) string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.String()
	}
	return strings.Join(names, ",")
}
