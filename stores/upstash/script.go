package upstash

import (
	"context"
	_ "embed" // fixed.lua
	"errors"
)

//go:embed fixed.lua
var fixedLua string

// lockingKeys is the first line by which Upstash locks a script's keys alone, rather
// than the whole database. Redis itself knows no such flag and refuses the script.
// Source: https://upstash.com/docs/redis/features/key-locking
const lockingKeys = "#!lua flags=allow-key-locking\n"

// form is fixed.lua as one kind of server takes it. sha is the SHA-1 of its text, by
// which EVALSHA knows it: a constant, since a program that is bound to FIPS 140 must
// not compute one. A test holds it to the text.
type form struct{ sha, head string }

var (
	onUpstash = form{"9a34b214e8d8b3fb2b2af54134848856bc1c03cd", lockingKeys}
	elsewhere = form{"8a2e62e62d927001159e81b46de930ddb9873685", ""}
)

func (f *form) text() string { return f.head + fixedLua }

// evaluate has the script work on a key. It is one exchange, and a second one where
// the server does not have the script: NOSCRIPT says that nothing was executed, so the
// EVAL that follows is no repetition. It is EVAL, and not SCRIPT LOAD and EVALSHA again,
// because the latter may reach a replica that the former did not. A client finds out
// once, by one exchange more, that its server is not Upstash.
func (s *Store) evaluate(ctx context.Context, key string, args args) (reply [3]int64, err error) {
	defer func() { s.reports.script(err, s.clock.Now()) }()
	f := &onUpstash
	if s.stock.Load() {
		f = &elsewhere
	}
	reply, err = s.ask(ctx, evalshaBody(f.sha, key, args))
	if !errors.Is(err, errNoScript) {
		return reply, err
	}
	reply, err = s.ask(ctx, evalBody(f.text(), key, args))
	if f == &elsewhere || !errors.Is(err, errNotCompiled) {
		return reply, err
	}
	if s.stock.CompareAndSwap(false, true) {
		s.reports.stock()
	}
	return s.ask(ctx, evalBody(elsewhere.text(), key, args))
}

// ask is one exchange about the script.
func (s *Store) ask(ctx context.Context, body []byte) (reply [3]int64, err error) {
	var slots [1]slot
	if err := s.exchange(ctx, body, slots[:]); err != nil {
		return reply, err
	}
	switch slots[0].kind {
	case isTriple:
		return slots[0].three, nil
	case isError:
		return reply, failedScript(slots[0].text)
	}
	return reply, malformed("an answer to a script that is not three numbers")
}
