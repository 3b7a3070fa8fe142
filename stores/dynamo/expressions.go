package dynamo

import (
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
}

var (
	// count adds a hit, and what is owed before it, to a window that is open and has room
	// for both.
	count = newExpression("ADD #n :c", "#e > :now AND #n <= :room", "#n", "#e")

	// pay adds what is owed to a window that is open and has room for it, but not for the
	// hit as well.
	pay = newExpression("ADD #n :o", "#e > :now AND #n > :short AND #n <= :room", "#n", "#e")

	// fill does so where there is room for a part of it only. What is then in the window is
	// known without a min().
	fill = newExpression("SET #n = :quota", "#e > :now AND #n > :room AND #n < :quota", "#n", "#e")

	// open starts a window where there is none or where it is over. Time to live
	// deletes days late, if at all, so what is over is judged here, never by the
	// item's absence.
	open = newExpression("SET #n = :c, #e = :end, #x = :x", "attribute_not_exists(#e) OR #e <= :now", "#n", "#e", "#x")

	// shorten moves a window's end that nobody can have meant.
	shorten = newExpression("SET #e = :end, #x = :x", "#e = :seen", "#e", "#x")

	// giveBack takes a cost out of an open window that holds at least as much.
	giveBack = newExpression("ADD #n :c", "#e > :now AND #n >= :least", "#n", "#e")

	// empty sets an open window that holds less than what is given back to 0.
	empty = newExpression("SET #n = :zero", "#e > :now AND #n = :seen", "#n", "#e")
)

func newExpression(update, condition string, names ...string) expression {
	attributes := make(map[string]string, len(names))
	for _, name := range names {
		attributes[name] = name[1:]
	}
	return expression{update, condition, attributes}
}

// input makes the call. Both answers bring the whole item: ALL_NEW rather than
// UPDATED_NEW, for which engines show different things.
func (s *Store) input(key string, e *expression, values map[string]types.AttributeValue) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName:                           &s.table,
		Key:                                 s.key(key),
		UpdateExpression:                    aws.String(e.update),
		ConditionExpression:                 aws.String(e.condition),
		ExpressionAttributeNames:            e.names,
		ExpressionAttributeValues:           values,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}
