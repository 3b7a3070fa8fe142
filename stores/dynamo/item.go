package dynamo

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/stores"
)

// The attributes of an item besides key and time to live. Times are since 1970, in
// milliseconds for fixed and sliding windows and in microseconds for the others.
const (
	countAttribute = "n" // fixed, sliding: cost admitted in the window, of sliding the newer one
	endAttribute   = "e" // fixed, sliding: when that window ends
	olderAttribute = "p" // sliding: cost admitted in the window before
	wholeAttribute = "t" // token, leaky: when the bucket is whole again
	slotAttribute  = "s" // log: s0, s1 and so on hold a time stamp each
	topAttribute   = "q" // log: no slot from this number on holds a stamp that counts
	blockAttribute = "b" // refused until then
)

// maxExact is the largest integer that every engine keeps exactly: some count in
// doubles.
const maxExact = 1<<53 - 1

// state is what an item says.
type state struct {
	meter.State
	there   bool // something is kept, be it over; a block apart
	guessed bool // not read, but concluded from what was seen before

	slots *[maxLog]int64 // of a log; 0 where there is no attribute
	top   int64
}

// read makes sense of an item. ok is false if an attribute is missing, of another
// type, no integer or out of range: then nothing may be concluded from it.
func (t *taking) read(item map[string]types.AttributeValue) (s state, ok bool) {
	ok = true
	take := func(name string, least, most int64) int64 {
		i, fine := readInteger(item[name])
		ok = ok && fine && i >= least && i <= most
		return i
	}
	switch t.rule.Algorithm {
	case stores.Log:
		s.slots, s.there, ok = readSlots(item)
		if s.there {
			s.top = take(topAttribute, 1, maxExact)
		}
	case stores.Token, stores.Leaky:
		if s.there = item[wholeAttribute] != nil; s.there {
			s.End = take(wholeAttribute, 1, maxExact)
		}
	case stores.Sliding:
		if s.there = item[endAttribute] != nil; s.there {
			// More than this no limit of the window can have let in, and what is
			// multiplied by the window stays exact.
			most := maxExact / t.rule.Window
			s.End, s.N, s.P = take(endAttribute, 1, maxExact), take(countAttribute, 0, most), take(olderAttribute, 0, most)
		}
	default:
		if s.there = item[endAttribute] != nil; s.there {
			s.End, s.N = take(endAttribute, 1, maxExact), take(countAttribute, 0, maxExact)
		}
	}
	if t.rule.Block > 0 && item[blockAttribute] != nil {
		s.Block = take(blockAttribute, 1, maxExact)
	}
	return s, ok
}

// readSlots reads the stamps of a log. there is false if it has none and never had.
func readSlots(item map[string]types.AttributeValue) (slots *[maxLog]int64, there, ok bool) {
	slots, ok = new([maxLog]int64), true
	there = item[topAttribute] != nil
	for name, v := range item {
		if len(name) < 2 || name[:1] != slotAttribute {
			continue
		}
		i, err := strconv.Atoi(name[1:])
		if err != nil || i < 0 || i >= maxLog || name != slotName(i) {
			continue
		}
		stamp, fine := readInteger(v)
		there, ok = true, ok && fine && stamp >= 1
		slots[i] = stamp
	}
	return slots, there, ok
}

func slotName(i int) string { return slotAttribute + strconv.Itoa(i) }

func readInteger(v types.AttributeValue) (int64, bool) {
	number, ok := v.(*types.AttributeValueMemberN)
	if !ok || number == nil {
		return 0, false
	}
	i, err := strconv.ParseInt(number.Value, 10, 64)
	return i, err == nil && i <= maxExact
}

func number(i int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(i, 10)}
}

func (s *Store) key(key string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{KeyAttribute: &types.AttributeValueMemberS{Value: key}}
}
