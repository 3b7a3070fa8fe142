package dynamo

import (
	"context"
	"time"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/internal/meter"
)

// begun starts a block, unless one is on already or the key was forgotten meanwhile.
var (
	begun    = newExpression("SET #b = :b, #x = :x", "attribute_exists(#e) AND "+freeOfBlock)
	begunAsT = newExpression("SET #b = :b, #x = :x", "attribute_exists(#t) AND "+freeOfBlock)
	begunAsQ = newExpression("SET #b = :b, #x = :x", "attribute_exists(#q) AND "+freeOfBlock)
)

func (t *taking) starter() *expression {
	switch t.kept() {
	case wholeAttribute:
		return &begunAsT
	case topAttribute:
		return &begunAsQ
	}
	return &begun
}

// block starts the block that after shows and answers with it. Unlike a hit this may be
// sent twice: what the first call began, the second one finds. If it can't be known
// that it is on, the refusal stands as it were without: a wait that is too short costs the
// client one more refusal, and one that is remembered and too long would shut
// him out of what the table would let in.
func (t *taking) block(ctx context.Context, began time.Time, s, after *state, a meter.Answer, now int64) meter.Answer {
	c := t.starter().bind(map[string]int64{":b": after.Block, ":now": now, ":x": t.timeToLive(after, now)})
	for range 2 {
		got, err := t.s.update(ctx, began, t.key, c)
		switch {
		case err == nil && got.met:
			return a
		case err == nil:
			if other, ok := t.read(got.item); ok && other.Block > now {
				return t.weigh(&other, now)
			}
			return t.unblocked(s, now)
		case fault.Definite(err):
			return t.unblocked(s, now)
		}
	}
	return t.unblocked(s, now)
}

// unblocked answers as if the limit had no block.
func (t *taking) unblocked(s *state, now int64) meter.Answer {
	bare, after := *t, *s
	bare.rule.Block, after.Block = 0, 0
	return bare.weigh(&after, now)
}
