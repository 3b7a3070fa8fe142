package handler

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sallyport/sallyport/stores"
)

// ParsePolicies reads a JSON list of policies:
//
//	[{
//	  "name": "contact-form",
//	  "limit": "sliding 5/10m",
//	  "key": "ip",
//	  "mode": "enforce",
//	  "outage": "fallback",
//	  "showQuota": false
//	}]
//
// Name, limit (see [stores.ParseLimit]) and key (see [ParseKey]) are required; the
// others are here with their defaults. Nothing is guessed: a name of a field in another
// case, a field that there is not, or is there twice, a null, anything behind the list
// is an error, and so is whatever [New] would refuse without knowing the store: a name
// that is not printable or not unique, an empty list. The error wraps
// [stores.ErrInvalid] and names the policy by place and name, the field, and what was
// expected. Policy's functions are set in code, on what ParsePolicies returned.
func ParsePolicies(data []byte) ([]Policy, error) {
	fail := func(format string, a ...any) ([]Policy, error) {
		return nil, fmt.Errorf("handler: %w policies: "+format, append([]any{stores.ErrInvalid}, a...)...)
	}
	if !utf8.Valid(data) {
		return fail("the text is not UTF-8")
	}
	var list []json.RawMessage
	err := json.Unmarshal(data, &list)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return fail("no JSON, at byte %d: %s", syntax.Offset, syntax.Error())
	}
	if err != nil || list == nil {
		return fail("%s: want a list of them", kindOf(trimSpace(data)))
	}
	if len(list) == 0 {
		return fail("none given: want at least one")
	}
	policies := make([]Policy, 0, len(list))
	for i, element := range list {
		p, name, err := decodePolicy(element)
		if err == nil {
			err = p.check()
		}
		if err == nil && slices.ContainsFunc(policies, func(other Policy) bool { return other.Name == p.Name }) {
			err = fmt.Errorf("%w name: another policy has it", stores.ErrInvalid)
		}
		if err != nil {
			return nil, fmt.Errorf("handler: policies[%d] %s: %w", i, quoted(name), err)
		}
		policies = append(policies, p)
	}
	return policies, nil
}

// UnmarshalJSON reads one policy as [ParsePolicies] does. The functions of p stay as
// they are; all that has a name in JSON is set.
func (p *Policy) UnmarshalJSON(data []byte) error {
	if !json.Valid(data) {
		return fmt.Errorf("handler: %w policy: no JSON", stores.ErrInvalid)
	}
	decoded, name, err := decodePolicy(trimSpace(data))
	if err == nil {
		err = decoded.check()
	}
	if err != nil {
		return fmt.Errorf("handler: policy %s: %w", quoted(name), err)
	}
	p.Name, p.Limit, p.Key = decoded.Name, decoded.Limit, decoded.Key
	p.Mode, p.Outage, p.ShowQuota = decoded.Mode, decoded.Outage, decoded.ShowQuota
	return nil
}

// policyField is how one field is read, and what it should be.
type policyField struct {
	name, want string
	required   bool
	set        func(p *Policy, value []byte) error
}

var policyFields = []policyField{
	{"name", "a text of printable ASCII", true, func(p *Policy, value []byte) error { return fromJSON(value, &p.Name) }},
	{"limit", `a text such as "sliding 5/10m"`, true, func(p *Policy, value []byte) error { return fromJSON(value, &p.Limit) }},
	{"key", `a text such as "ip"`, true, func(p *Policy, value []byte) error { return fromJSON(value, &p.Key) }},
	{"mode", `"enforce", "report" or "signal"`, false, func(p *Policy, value []byte) error { return fromJSON(value, &p.Mode) }},
	{"outage", `"fallback", "allow" or "refuse"`, false, func(p *Policy, value []byte) error { return fromJSON(value, &p.Outage) }},
	{"showQuota", "true or false", false, func(p *Policy, value []byte) error { return fromJSON(value, &p.ShowQuota) }},
}

// fromJSON reads a value of the kind that *to is: encoding/json would take null for
// everything.
func fromJSON(value []byte, to any) error {
	want := byte('"')
	if _, isBool := to.(*bool); isBool {
		want = 't'
	}
	if c := value[0]; c != want && (want == '"' || c != 'f') {
		return errKind
	}
	return json.Unmarshal(value, to)
}

var errKind = errors.New("of another kind")

// decodePolicy reads valid JSON. The name is for the error, and there as far as it
// could be read.
func decodePolicy(data []byte) (p Policy, name string, err error) {
	if data[0] != '{' {
		return p, "", fmt.Errorf("%w: %s: want an object", stores.ErrInvalid, kindOf(data))
	}
	type member struct {
		name  string
		value []byte
	}
	var members []member
	for i := 1; ; {
		i = skipSpace(data, i)
		if data[i] == '}' {
			break
		}
		if data[i] == ',' {
			i++
			continue
		}
		var m member
		start := i
		i = skipString(data, i)
		if err := json.Unmarshal(data[start:i], &m.name); err != nil {
			return p, "", fmt.Errorf("%w: %w", stores.ErrInvalid, err)
		}
		start = skipSpace(data, skipSpace(data, i)+1)
		i = skipValue(data, start)
		m.value = data[start:i]
		if m.name == "name" && name == "" {
			_ = fromJSON(m.value, &name) // an error shows below
		}
		members = append(members, m)
	}
	seen := make(map[string]bool, len(policyFields))
	for _, m := range members {
		i := slices.IndexFunc(policyFields, func(f policyField) bool { return f.name == m.name })
		if i < 0 {
			return p, name, fmt.Errorf("%w field %s: there is none of this name: want %s", stores.ErrInvalid, quoted(m.name), fieldNames())
		}
		f := &policyFields[i]
		if seen[f.name] {
			return p, name, fmt.Errorf("%w field %q: it is there twice", stores.ErrInvalid, f.name)
		}
		seen[f.name] = true
		switch err := f.set(&p, m.value); {
		case err == errKind:
			return p, name, fmt.Errorf("%w field %q: %s: want %s", stores.ErrInvalid, f.name, kindOf(m.value), f.want)
		case err != nil:
			return p, name, fmt.Errorf("field %q: %w", f.name, err)
		}
	}
	for i := range policyFields {
		if f := &policyFields[i]; f.required && !seen[f.name] {
			return p, name, fmt.Errorf("%w field %q: it is missing: want %s", stores.ErrInvalid, f.name, f.want)
		}
	}
	return p, name, nil
}

func fieldNames() string {
	names := make([]string, len(policyFields))
	for i, f := range policyFields {
		names[i] = f.name
	}
	return strings.Join(names, ", ")
}

// kindOf says what a JSON value is.
func kindOf(value []byte) string {
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a text"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}
