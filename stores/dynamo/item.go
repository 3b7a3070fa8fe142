package dynamo

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The attributes of a window besides key and time to live.
const (
	countAttribute = "n" // cost admitted in this window
	endAttribute   = "e" // when the window ends, in milliseconds since 1970
)

// maxExact is the largest integer that every engine keeps exactly: some count in
// doubles.
const maxExact = 1<<53 - 1

// window is what an item says.
type window struct {
	n   int64 // 0 to maxExact
	end int64 // 1 to maxExact
}

// readWindow reads an item. ok is false if an attribute is missing, of another type,
// no integer or out of range: then nothing may be concluded from it.
func readWindow(item map[string]types.AttributeValue) (w window, ok bool) {
	n, nOK := readInteger(item[countAttribute])
	end, endOK := readInteger(item[endAttribute])
	return window{n, end}, nOK && endOK && n >= 0 && end > 0
}

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
