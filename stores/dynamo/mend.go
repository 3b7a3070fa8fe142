package dynamo

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sallyport/sallyport/stores"
)

// maxMends bounds an expression. What is left over is for the next refusal.
const maxMends = 32

// mend moves what lies so far ahead that nobody can have meant it, the work of a
// clock that was far off: to where it would be if it had been written now. It is nil if
// there is nothing of the kind. What is counted stays.
func (t *taking) mend(s *state, now int64) *call {
	m := newMending(now)
	m.mends = true
	switch t.rule.Algorithm {
	case stores.Log:
		for i, stamp := range s.slots {
			if stamp-now > t.lead() && len(m.conditions) < maxMends {
				m.move(slotName(i), stamp, now)
			}
		}
	case stores.Token, stores.Leaky:
		if s.End-now > t.rule.Burst+t.lead() {
			m.move(wholeAttribute, s.End, now+t.rule.Burst)
		}
	default:
		if s.End-now > t.rule.Window+t.lead() {
			m.move(endAttribute, s.End, now+t.rule.Window)
		}
	}
	block := s.Block
	if longest := max(t.rule.Block, t.longest()); block-now > longest+t.lead() {
		block = now + t.rule.Block
		m.move(blockAttribute, s.Block, block)
	}
	if m.conditions == nil {
		return nil
	}
	after := *s
	after.Block = block
	m.updates = append(m.updates, "#x = :x")
	m.names["#x"], m.bound[":x"] = TTLAttribute, number(t.timeToLive(&after, now))
	return m.done()
}

// mending is a call in the making.
type mending struct {
	*call
	updates, conditions []string
}

func newMending(now int64) *mending {
	return &mending{call: &call{
		expression: &expression{names: make(map[string]string)}, bound: make(map[string]types.AttributeValue), at: now, older: anything,
	}}
}

// move sets an attribute, provided that it is as it was seen.
func (m *mending) move(name string, seen, to int64) {
	n := strconv.Itoa(len(m.conditions))
	m.names["#"+name] = name
	m.bound[":o"+n], m.bound[":n"+n] = number(seen), number(to)
	m.updates = append(m.updates, "#"+name+" = :n"+n)
	m.conditions = append(m.conditions, "#"+name+" = :o"+n)
}

func (m *mending) done() *call {
	m.update = "SET " + strings.Join(m.updates, ", ")
	m.condition = strings.Join(m.conditions, " AND ")
	return m.call
}
