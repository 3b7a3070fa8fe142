package handler

// ByRoute counts by the pattern under which [net/http.ServeMux] found the handler
// ("POST /item/{id}"), never by the concrete URL, which the caller chooses. Around
// a mux, or without one, there is no pattern yet, and all requests are one route:
// wrap the handlers inside the mux.
func ByRoute() Key { return Key{route{}} }

type route struct{}

func (route) identify(q *inquiry) bool {
	q.id.add("route")
	q.id.add(q.r.Pattern)
	return true
}

func (route) given(id *identity, texts []string) (bool, error) {
	id.add("route")
	id.add(texts[0])
	return true, nil
}

func (route) arity() int     { return 1 }
func (route) check() error   { return nil }
func (route) rank() rank     { return rankEveryone }
func (route) String() string { return "route" }
