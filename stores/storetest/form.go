package storetest

import (
	"errors"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// form is an algorithm by the function that makes its limits.
type form struct {
	name  string
	limit func(quota int, window time.Duration) stores.Limit
}

var (
	fixedForm   = form{"fixed window", stores.FixedWindow}
	slidingForm = form{"sliding window", stores.SlidingWindow}
	logForm     = form{"sliding log", stores.SlidingLog}
	tokenForm   = form{"token bucket", stores.TokenBucket}
	leakyForm   = form{"leaky bucket", stores.LeakyBucket}

	allForms = []form{fixedForm, slidingForm, logForm, tokenForm, leakyForm}
)

func (f form) algorithm() stores.Algorithm { return f.limit(1, long).Algorithm }

func (f form) bucket() bool {
	return f.algorithm() == stores.Token || f.algorithm() == stores.Leaky
}

// hit returns a hit of cost 1 on a fresh key.
func (c *check) hit(f form, quota int, window time.Duration) stores.Hit {
	return stores.Hit{Key: c.keys.next(), Limit: f.limit(quota, window)}
}

// group is what every algorithm but the fixed window has to do, and what it alone has
// to. The fixed window's clauses are the groups that name no algorithm.
func (f form) group(own ...clause) group {
	g := group{f.name, own}
	for _, generic := range [][]formClause{formCountClauses, formWaitClauses, formOptionalClauses, formRefundClauses, formDebtClauses, formScriptClauses} {
		for _, cl := range generic {
			g.clauses = append(g.clauses, cl.of(f))
		}
	}
	return g
}

// formClause is a clause that is the same for several algorithms.
type formClause struct {
	name  string
	check func(*check, form)
}

func (cl formClause) of(f form) clause {
	return clause{cl.name, func(c *check) { cl.check(c, f) }}
}

// serves reports whether the store serves such a limit.
func (c *check) serves(s stores.Store, l stores.Limit) bool {
	c.Helper()
	h := stores.Hit{Key: c.keys.next(), Limit: l}
	_, err := s.Take(c.Context(), h)
	if errors.Is(err, errors.ErrUnsupported) {
		return false
	}
	c.must("Take", h, err)
	return true
}

// supported returns the forms of which the store serves limits such as change makes
// them. It skips the clause if there is none.
func (c *check) supported(s stores.Store, change func(stores.Limit) stores.Limit) (forms []form) {
	c.Helper()
	for _, f := range allForms {
		if c.serves(s, change(f.limit(5, long))) {
			forms = append(forms, f)
		}
	}
	if len(forms) == 0 {
		c.Skipf("the store serves no such limit")
	}
	return forms
}

func plain(l stores.Limit) stores.Limit { return l }

// lacks reports whether the store has no such method for this limit.
func (c *check) lacks(s stores.Store, method string, l stores.Limit) bool {
	for _, o := range operations(s) {
		if o.name == method {
			return o.lacking(o.do(c.Context(), stores.Hit{Key: c.keys.next(), Limit: l}))
		}
	}
	return true
}
