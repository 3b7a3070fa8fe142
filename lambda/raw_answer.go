package lambda

import (
	"encoding/json"
	"net/http"
)

// addToRaw returns an answer with the fields of h, or as it is if it is none of those
// that have headers: an HTTP API takes what has no statusCode for the body of a 200.
// Of the other members not a byte changes.
func addToRaw(h http.Header, form shape, multi bool, answer []byte) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(answer, &members) != nil || members["statusCode"] == nil {
		return answer
	}
	var (
		single  map[string]string
		many    map[string][]string
		cookies []string
	)
	if !read(members, "headers", &single) || !read(members, "multiValueHeaders", &many) || !read(members, "cookies", &cookies) {
		return answer
	}
	switch {
	case form == shapeREST:
		single, many = addToSingle(h, single, many), addToMulti(h, many, false)
	case form == shapeALB && multi:
		single, many = cloneSingle(single), addToMulti(h, many, true)
	default:
		single, many = addToSingle(h, single, nil), cloneMulti(many)
	}
	if cookies == nil {
		cookies = []string{}
	}
	for name, value := range map[string]any{"headers": single, "multiValueHeaders": many, "cookies": cookies} {
		if _, there := members[name]; !there && empty(value) {
			continue
		}
		b, err := marshal(value)
		if err != nil {
			return answer
		}
		members[name] = b
	}
	b, err := marshal(members)
	if err != nil {
		return answer
	}
	return b
}

// read decodes a member, if it is there; false if it is of another type.
func read(members map[string]json.RawMessage, name string, into any) bool {
	value, there := members[name]
	return !there || json.Unmarshal(value, into) == nil
}

func empty(value any) bool {
	switch v := value.(type) {
	case map[string]string:
		return len(v) == 0
	case map[string][]string:
		return len(v) == 0
	case []string:
		return len(v) == 0
	}
	return false
}
