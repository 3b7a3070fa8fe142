package handler

// Join counts by several keys together: Join(ByIP(), ByRoute()) gives every client
// a budget for each route. Where a request lacks one of the identities, its client's
// address stands in that place. New reports an empty Join, and Manual within one.
func Join(keys ...Key) Key {
	sources, bad := sourcesOf(keys)
	if bad != "" {
		return Key{invalid{"join(" + sourceNames(sources) + ")", bad}}
	}
	return Key{join(sources)}
}

// FirstOf counts by the first of keys for which the request has an identity:
// FirstOf(ByHeader("X-Api-Key"), ByIP()). One value under two of the keys is two
// identities. A body that one of the keys can't read is refused as if the key stood
// alone, but for one case: FirstOf(ByForm("email"), ByJSON("email")) takes both kinds
// of bodies. New reports an empty FirstOf, and Manual within one.
//
// For [Guard.Take] it wants the identities of all its keys, in order, and "" for
// those that the caller does not have.
func FirstOf(keys ...Key) Key {
	sources, bad := sourcesOf(keys)
	if bad != "" {
		return Key{invalid{"first(" + sourceNames(sources) + ")", bad}}
	}
	return Key{firstOf(sources)}
}

func sourcesOf(keys []Key) (sources []source, bad string) {
	if len(keys) == 0 {
		return nil, "want at least one key"
	}
	for _, k := range keys {
		switch s := k.source.(type) {
		case nil:
			return sources, "one of the keys is the zero Key"
		case manual:
			return sources, "Manual can't be a part of another key"
		case invalid:
			sources, bad = append(sources, s), s.reason
		default:
			sources = append(sources, s)
		}
	}
	return sources, bad
}

type join []source

func (k join) identify(q *inquiry) bool {
	start := len(q.id.ends)
	q.id.add("join")
	for _, s := range k {
		if s.identify(q) {
			continue
		}
		if q.refusal != 0 {
			q.id.cut(start)
			return false
		}
		addNone(q)
	}
	return true
}

func (k join) given(id *identity, texts []string) (bool, error) {
	start := len(id.ends)
	id.add("join")
	for _, s := range k {
		n := s.arity()
		ok, err := s.given(id, texts[:n])
		if !ok || err != nil {
			id.cut(start)
			return false, err
		}
		texts = texts[n:]
	}
	return true, nil
}

func (k join) arity() int     { return arityOf(k) }
func (k join) check() error   { return nil }
func (k join) String() string { return "join(" + sourceNames(k) + ")" }

// rank is the caller's if one part is and the others are his or the route. Beside
// any other part the whole says something of what is asked for.
func (k join) rank() rank {
	best, pure, known := rankUnknown, true, true
	for _, s := range k {
		r := s.rank()
		best = min(best, r)
		known = known && r != rankUnknown
		if _, isRoute := s.(route); !isRoute && r != rankCaller {
			pure = false
		}
	}
	switch {
	case best == rankCaller && !pure:
		return rankTarget
	case best == rankEveryone && !known:
		return rankUnknown
	}
	return best
}

type firstOf []source

func (k firstOf) identify(q *inquiry) bool {
	start := len(q.id.ends)
	q.id.add("first")
	for _, s := range k {
		if s.identify(q) {
			return true
		}
		if q.refusal == 0 {
			continue
		}
		if !q.misfits || !anyReads(k, q.body.media) {
			break
		}
		q.refusal, q.misfits = 0, false
	}
	q.id.cut(start)
	return false
}

func (k firstOf) given(id *identity, texts []string) (bool, error) {
	start := len(id.ends)
	id.add("first")
	for _, s := range k {
		n := s.arity()
		ok, err := s.given(id, texts[:n])
		if ok {
			return true, nil
		}
		if err != nil {
			id.cut(start)
			return false, err
		}
		texts = texts[n:]
	}
	id.cut(start)
	return false, nil
}

func (k firstOf) arity() int     { return arityOf(k) }
func (k firstOf) check() error   { return nil }
func (k firstOf) String() string { return "first(" + sourceNames(k) + ")" }

func (k firstOf) rank() rank {
	worst := rankCaller
	for _, s := range k {
		worst = max(worst, s.rank())
	}
	return worst
}

func arityOf(sources []source) int {
	n := 0
	for _, s := range sources {
		n += s.arity()
	}
	return n
}
