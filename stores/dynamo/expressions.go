package dynamo

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// expression is an update with its condition. Attribute names stand behind # always:
// the service reserves hundreds of words. No clock, arithmetic or max() exists
// inside a condition, so the values bring all of that.
type expression struct {
	update    string
	condition string
	names     map[string]string
	values    []string // that it uses; what is sent beside them is an error
}

func newExpression(update, condition string) expression {
	e := expression{update: update, condition: condition, names: make(map[string]string)}
	seen := make(map[string]bool)
	for _, word := range strings.FieldsFunc(update+" "+condition, between) {
		switch {
		case word[0] == '#':
			e.names[word] = word[1:]
		case word[0] == ':' && !seen[word]:
			seen[word] = true
			e.values = append(e.values, word)
		}
	}
	return e
}

func between(r rune) bool { return strings.ContainsRune(" ,()=<>", r) }

// guard is what a write demands of the key's block.
type guard uint8

const (
	unguarded guard = iota // the limit has no block
	free                   // none is on
	held                   // the one that was seen is on still
	guards
)

// freeOfBlock is the condition that no block is on.
const freeOfBlock = "(attribute_not_exists(#b) OR #b <= :now)"

// claim is a write of a hit or of a payment, under each guard.
type claim [guards]expression

func newClaim(update, condition string) claim {
	return claim{
		unguarded: newExpression(update, condition),
		free:      newExpression(update, "("+condition+") AND "+freeOfBlock),
		held:      newExpression(update, "("+condition+") AND #b = :b"),
	}
}

// call is one conditional update, and what is known of its outcome.
type call struct {
	*expression
	bound map[string]types.AttributeValue

	at    int64 // the time by which it was made up
	hit   bool  // the hit is in it, and not a payment alone
	fresh bool  // its condition holds where nothing is kept of the key
	held  bool  // it demands the block that was seen
	mends bool  // it puts right what a wrong clock wrote, and counts nothing

	// What the item shows once it was carried out, if the answer makes sense.
	least, most int64 // of the level
	end         int64 // of the window; 0 if it is not known beforehand
	older       int64 // of the older window; any where it is negative
	slots       []int // of a log: where its stamps are
	stamps      []int64
}

// bind makes a call of an expression, with those of the values that it uses.
func (e *expression) bind(values map[string]int64) *call {
	c := &call{expression: e, bound: make(map[string]types.AttributeValue, len(e.values)), older: anything}
	for _, name := range e.values {
		c.bound[name] = number(values[name])
	}
	return c
}

const anything = -1

// input makes the call. Both answers bring the whole item: ALL_NEW rather than
// UPDATED_NEW, for which engines show different things.
func (s *Store) input(key string, c *call) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName:                           &s.table,
		Key:                                 s.key(key),
		UpdateExpression:                    aws.String(c.update),
		ConditionExpression:                 aws.String(c.condition),
		ExpressionAttributeNames:            c.names,
		ExpressionAttributeValues:           c.bound,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}
