package handler

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/sallyport/sallyport/stores"
)

// maxName is the longest name of a policy, in bytes.
const maxName = 128

// Policy is a named limit, whom it counts together, and what its refusal does. A
// Policy is not changed by the guard that is made of it, and its functions may be
// called at the same time.
//
// Skip, LimitBy and Cost, as the function of [ByFunc], run before anything is
// counted. If one panics the request is not lost and not free: the panic is logged
// and reads as no identity, no exemption, Limit, and a cost of 1. They must leave the
// request's body alone, for what they read of it the handler does not get.
//
// A Policy is read from JSON, and written, but for its functions: see [ParsePolicies].
type Policy struct {
	// Name is 1 to 128 bytes of printable ASCII, unique within a guard. It is the
	// scope of the counters: guards over one store and prefix that use one name with
	// one algorithm and window count together. Clients may see it.
	Name string `json:"name"`

	// Limit must be valid, and one that the store can serve.
	Limit stores.Limit `json:"limit"`

	// Key tells whose requests are counted together.
	Key Key `json:"key"`

	// Mode is Enforce by default.
	Mode Mode `json:"mode,omitempty"`

	// Outage is what happens while the shared store can't decide: by default this
	// instance's memory does. With OutageAllow a response allowed in an outage shows no
	// numbers of this policy; with OutageRefuse the answer is a 503.
	Outage stores.Outage `json:"outage,omitempty"`

	// LimitBy chooses the limit of a request (plans). A limit that is zero, invalid or
	// beyond the store means Limit. What was counted is kept while only Quota differs.
	// Guard's Take, Peek and Reset have no request and use Limit.
	LimitBy func(*http.Request) stores.Limit `json:"-"`

	// Cost is how much of the quota a request takes; nil or less than 1 means 1. A
	// cost above the quota is refused with 429 and without Retry-After, because no
	// waiting helps.
	Cost func(*http.Request) int `json:"-"`

	// Skip exempts a request from this policy: no key is made and no store asked.
	Skip func(*http.Request) bool `json:"-"`

	// ShowQuota lists the policy in the RateLimit fields although it is not keyed on
	// the caller alone. Without it only Enforce policies are listed whose key is made
	// of ByIP, ByNetwork, ByHeader, ByCookie and ByClaim, of FirstOf these, or of Join with
	// these and ByRoute. ByFunc may be keyed on anything and ByForm, ByJSON
	// and an Email key are keyed on what anybody may name, so all these need ShowQuota. The refusal of a policy
	// that is not listed names no policy, and its Retry-After is rounded up to a
	// quarter of the window: whoever hits a limit that others share should not learn
	// from it what they do.
	ShowQuota bool `json:"showQuota,omitempty"`

	// Refused writes the answer to a request that this policy refused, instead of the
	// problem document or page. The status is its own (a handler that writes nothing
	// answers 200, as any handler does). Retry-After, the RateLimit fields and
	// Cache-Control: no-store are set, and the Verdict is in the request's context.
	Refused http.Handler `json:"-"`
}

// policy is a Policy with all that can be known before the first request.
type policy struct {
	Policy
	manual bool
	shown  bool
	quoted string // the name as a string of structured fields and of JSON, which for printable ASCII are one
	state  string // of the RateLimit field, up to the number of what remains
	quota  string // the item of the RateLimit-Policy field
	base   string // of the keys that package memory gets when it is alone
}

// check reports what is wrong with p whatever the store.
func (p *Policy) check() error {
	if len(p.Name) == 0 || len(p.Name) > maxName || !printable(p.Name) {
		return fmt.Errorf("%w name: want 1 to %d bytes of printable ASCII", stores.ErrInvalid, maxName)
	}
	if err := p.Limit.Validate(); err != nil {
		return err
	}
	if p.Key.source == nil {
		return fmt.Errorf("%w key: none given: want one such as handler.ByIP()", stores.ErrInvalid)
	}
	if err := p.Key.source.check(); err != nil {
		return err
	}
	if _, err := p.Mode.MarshalText(); err != nil {
		return err
	}
	_, err := p.Outage.MarshalText()
	return err
}

func newPolicy(p Policy, common *common) (policy, error) {
	fail := func(err error) (policy, error) {
		return policy{}, fmt.Errorf("handler: policy %s: %w", quoted(p.Name), err)
	}
	if err := p.check(); err != nil {
		return fail(err)
	}
	if err := common.supports(p.Limit); err != nil {
		return fail(err)
	}
	c := policy{Policy: p, quoted: quoteField(p.Name)}
	_, c.manual = p.Key.source.(manual)
	c.shown = p.Mode == Enforce && !c.manual && (p.ShowQuota || p.Key.source.rank() == rankCaller)
	c.state = c.quoted + ";r="
	c.quota = string(appendQuota(nil, c.quoted, p.Limit))
	c.base = string(common.appendBase(nil, p.Name, p.Limit))
	return c, nil
}

// quoteField writes printable ASCII as a String of RFC 9651 section 3.3.3. For
// these bytes JSON has the same form.
func quoteField(s string) string {
	b := make([]byte, 0, len(s)+2)
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		if s[i] == '"' || s[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return string(append(b, '"'))
}

func printable[T string | []byte](s T) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// quoted bounds what an error repeats of a configured text.
func quoted(s string) string {
	if len(s) > 64 {
		s = s[:64] + "..."
	}
	return strconv.Quote(s)
}
