package upstash

import (
	"context"
	_ "embed" // the parts of the script
	"errors"
)

// The script is one, whatever it is to do, so that a chain of several limits is one
// step and a server has one text to keep. Its parts are put together in this order.
var (
	//go:embed step.lua
	stepLua string
	//go:embed counter.lua
	counterLua string
	//go:embed metered.lua
	meteredLua string
	//go:embed fixed.lua
	fixedLua string
	//go:embed sliding.lua
	slidingLua string
	//go:embed bucket.lua
	bucketLua string
	//go:embed log.lua
	logLua string
	//go:embed chain.lua
	chainLua string

	script = stepLua + counterLua + meteredLua + fixedLua + slidingLua + bucketLua + logLua + chainLua
)

// lockingKeys is the first line by which Upstash locks a script's keys alone, rather
// than the whole database. Redis itself knows no such flag and refuses the script.
// Source: https://upstash.com/docs/redis/features/key-locking
const lockingKeys = "#!lua flags=allow-key-locking\n"

// form is the script as one kind of server takes it. sha is the SHA-1 of its text, by
// which EVALSHA knows it: a constant, since a program that is bound to FIPS 140 must
// not compute one. A test holds it to the text.
type form struct{ sha, head string }

var (
	onUpstash = form{"f7c6340f1a417d4fc35165ddac85250670ae753e", lockingKeys}
	elsewhere = form{"bc5dd97403cf0ff42ced543f8172a6c90cd4ad96", ""}
)

func (f *form) text() string { return f.head + script }

// evaluate has the script take a step for each of some hits. It is one exchange, and a
// second one where the server does not have the script: NOSCRIPT says that nothing was
// executed, so the EVAL that follows is no repetition. It is EVAL, and not SCRIPT LOAD and
// EVALSHA again, because the latter may reach a replica that the former did not. A client
// finds out once, by one exchange more, that its server is not Upstash.
//
// It returns rowLength numbers for each hit that was decided. An error is about the one
// behind these; if there are none, it is about all.
func (s *Store) evaluate(ctx context.Context, step string, hits []asked) (rows []int64, err error) {
	defer func() { s.reports.script(err, s.clock.Now()) }()
	f := &onUpstash
	if s.stock.Load() {
		f = &elsewhere
	}
	rows, err = s.ask(ctx, evalshaBody(f.sha, step, hits), len(hits))
	if !errors.Is(err, errNoScript) || len(rows) > 0 {
		return rows, err
	}
	rows, err = s.ask(ctx, evalBody(f.text(), step, hits), len(hits))
	if f == &elsewhere || !errors.Is(err, errNotCompiled) || len(rows) > 0 {
		return rows, err
	}
	if s.stock.CompareAndSwap(false, true) {
		s.reports.stock()
	}
	return s.ask(ctx, evalBody(elsewhere.text(), step, hits), len(hits))
}

// ask is one exchange about the script.
func (s *Store) ask(ctx context.Context, body []byte, hits int) (rows []int64, err error) {
	var slots [1]slot
	if err := s.exchange(ctx, body, slots[:]); err != nil {
		return nil, err
	}
	answer := slots[0]
	switch {
	case answer.kind == isError:
		return nil, failedScript(answer.text, hits)
	case answer.kind != isList || len(answer.list)%rowLength != 0:
		return nil, malformed("an answer to a script that is not a list of numbers")
	}
	decided := len(answer.list) / rowLength
	switch {
	case decided > hits, decided == hits && answer.text != "", decided == 0 && answer.text == "":
		return nil, malformed("an answer to a script for another number of hits")
	case answer.text != "":
		// The script itself says that it failed at this hit.
		return answer.list, failedScript(answer.text, 1)
	}
	return answer.list, nil
}
