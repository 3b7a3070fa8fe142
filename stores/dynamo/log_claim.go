package dynamo

import (
	"math/rand/v2"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sallyport/sallyport/stores"
)

// maxGuessed is how many slots are claimed without having been seen: each takes
// four operators then, and two afterwards.
const maxGuessed = 60

// log claims a slot for each unit of cost. Racers pick slots at random, so that they
// seldom meet, and whoever loses one sees in the answer which are left.
func (t *taking) log(s *state, now int64) *call {
	need, quota := t.need(s, now), t.rule.Quota
	level := int64(len(t.stamps(s, now)))
	if s.guessed {
		// Free slots that are asked for show that there is room, but not that there is no
		// more: a payment alone is made only if the hit fits nowhere.
		if t.owed+need > quota {
			need = 0
		}
		return t.claimSlots(s, now, t.owed, need)
	}
	switch t.step(s, level, quota, t.owed, need) {
	case both:
		return t.claimSlots(s, now, t.owed, need)
	case owedAlone:
		return t.claimSlots(s, now, t.owed, 0)
	case owedInPart:
		return t.claimSlots(s, now, quota-level, 0)
	}
	return nil
}

// claimSlots makes a call that stamps so many slots as paid and so many with now.
//
// Stamps at and above the quota are of a time when it was higher. While one of them
// counts, only as many slots may be claimed as there is room, and always the first free
// ones: racers then contend for the same ones and can't exceed the quota between
// them. Who has not seen the item can't know, so its claim asks that no slot above the
// quota was ever claimed (top); the first claim after they are all over says so anew.
func (t *taking) claimSlots(s *state, now, paid, units int64) *call {
	gone := now - t.rule.Window
	b := slotClaim{call: &call{
		expression: &expression{names: make(map[string]string)}, bound: make(map[string]types.AttributeValue),
		at: now, hit: units > 0, fresh: s.guessed || !s.there, older: anything,
	}}
	var above, below []int
	for i, stamp := range s.slots {
		switch {
		case int64(i) >= t.rule.Quota && stamp > gone:
			above = append(above, i)
		case int64(i) < t.rule.Quota && stamp <= gone:
			below = append(below, i)
		}
	}
	switch {
	case !s.guessed:
		below = below[:len(below)-len(above)] // as many as there is room, so enough for this claim
	case int64(len(below)) < paid+units:
		below = below[:0]
		for i := range t.rule.Quota {
			below = append(below, int(i))
		}
	}
	b.value(":gone", gone)
	for i, slot := range pick(below, int(paid+units)) {
		if int64(i) < paid {
			b.claim(slot, ":paid", now+t.until-t.rule.Window)
		} else {
			b.claim(slot, ":now", now)
		}
		b.demandFree(slot, s, paid+units)
	}
	b.top(t.rule.Quota, s, above)
	switch {
	case t.rule.Block == 0:
	case s.Block > now:
		b.held = true
		b.demand("#b = :b")
		b.name(blockAttribute)
		b.value(":b", s.Block)
	default:
		b.demand(freeOfBlock)
		b.name(blockAttribute)
		b.value(":now", now)
	}
	b.set(TTLAttribute, ":x", t.timeToLive(s, now))
	b.update, b.condition = "SET "+strings.Join(b.sets, ", "), strings.Join(b.demands, " AND ")
	if !strings.Contains(b.condition, ":gone") {
		delete(b.bound, ":gone")
	}
	return b.call
}

// pick chooses so many of the slots, neighbours in the list: whoever picks as many
// elsewhere in it takes all of them or none.
func pick(slots []int, n int) []int {
	if n >= len(slots) {
		return slots
	}
	at := rand.IntN((len(slots)+n-1)/n) * n
	at = min(at, len(slots)-n)
	return slots[at : at+n]
}

// slotClaim is a call in the making.
type slotClaim struct {
	*call
	sets, demands []string
}

func (b *slotClaim) name(attribute string)      { b.names["#"+attribute] = attribute }
func (b *slotClaim) value(name string, i int64) { b.bound[name] = number(i) }
func (b *slotClaim) demand(condition string)    { b.demands = append(b.demands, condition) }
func (b *slotClaim) set(attribute, name string, i int64) {
	b.name(attribute)
	b.value(name, i)
	b.sets = append(b.sets, "#"+attribute+" = "+name)
}

func (b *slotClaim) claim(slot int, name string, stamp int64) {
	b.set(slotName(slot), name, stamp)
	b.slots, b.stamps = append(b.slots, slot), append(b.stamps, stamp)
}

// demandFree asks that a slot is free still. What was seen takes the shorter form.
func (b *slotClaim) demandFree(slot int, s *state, claimed int64) {
	name := "#" + slotName(slot)
	b.name(slotName(slot))
	switch {
	case s.guessed && claimed <= maxGuessed:
		b.demand("(attribute_not_exists(" + name + ") OR " + name + " <= :gone)")
	case s.guessed || !s.kept(slot):
		b.demand("attribute_not_exists(" + name + ")")
	default:
		b.demand(name + " <= :gone")
	}
}

// top sees to it that no slot above the quota counts beside what is claimed.
func (b *slotClaim) top(quota int64, s *state, above []int) {
	switch {
	case s.guessed || s.top <= quota:
		b.name(topAttribute)
		b.demand("(attribute_not_exists(#" + topAttribute + ") OR #" + topAttribute + " <= :q)")
		b.set(topAttribute, ":q", quota)
	case len(above) > 0:
		// They were counted, and go on counting.
	default:
		for i := int(quota); i < maxLog; i++ {
			b.demandFree(i, s, maxLog)
		}
		b.set(topAttribute, ":q", quota)
	}
}

// kept reports that the item has an attribute for the slot.
func (s *state) kept(slot int) bool { return s.slots[slot] != 0 }

// kept is the attribute that an item has if anything is kept of the key.
func (t *taking) kept() string {
	switch t.rule.Algorithm {
	case stores.Log:
		return topAttribute
	case stores.Token, stores.Leaky:
		return wholeAttribute
	}
	return endAttribute
}
