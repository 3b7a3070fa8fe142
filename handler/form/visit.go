package form

import "context"

// visit is what a form knows of one post, in the context of its request, which takes
// one allocation for both. One goroutine writes it, before any handler runs.
type visit struct {
	context.Context
	form    *Form
	posted  posted
	text    string // of the token that came
	keep    bool   // that token may be shown again
	trouble *trouble
}

type visitKey struct{}

// Value implements context.Context.
func (v *visit) Value(key any) any {
	if _, ok := key.(visitKey); ok {
		return v
	}
	return v.Context.Value(key)
}

func visitOf(ctx context.Context) *visit {
	v, _ := ctx.Value(visitKey{}).(*visit)
	return v
}
