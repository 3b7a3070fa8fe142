package dynamotest

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// add counts one up under key.
func add(ctx context.Context, client *dynamodb.Client, key string) (*dynamodb.UpdateItemOutput, error) {
	return client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 aws.String(Table),
		Key:                       map[string]types.AttributeValue{KeyAttribute: &types.AttributeValueMemberS{Value: key}},
		UpdateExpression:          aws.String("ADD #n :one"),
		ExpressionAttributeNames:  map[string]string{"#n": "n"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
		ReturnValues:              types.ReturnValueAllNew,
	})
}

func countOf(item map[string]types.AttributeValue) string {
	n, ok := item["n"].(*types.AttributeValueMemberN)
	if !ok {
		return ""
	}
	return n.Value
}

// Each fault shows the client what it promises and leaves the table as it
// promises, over both transports.
func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		name    string
		do      Manner
		applied bool
		code    string // of the exception; "" means none
		works   bool
	}{
		{name: "DropBefore", do: DropBefore()},
		{name: "DropAfter", do: DropAfter(), applied: true},
		{name: "Hang", do: Hang()},
		{name: "HangAfter", do: HangAfter(), applied: true},
		{name: "Slow", do: Slow(time.Hour)},
		{name: "StallBody", do: StallBody(), applied: true},
		{name: "CutBody", do: CutBody(), applied: true},
		{name: "Fail", do: Fail(400, "AccessDeniedException", "no"), code: "AccessDeniedException"},
		{name: "FailAfter", do: FailAfter(500, "InternalServerError", ""), code: "InternalServerError", applied: true},
		{name: "Throttle", do: Throttle("ThrottlingException", "TableWriteKeyRangeThroughputExceeded"), code: "ThrottlingException"},
		{name: "Date", do: Date(time.Hour), applied: true, works: true},
		{name: "NoDate", do: NoDate(), applied: true, works: true},
		{name: "Lie", do: Lie(func(a map[string]any) { a["n"] = map[string]any{"N": "7"} }), applied: true, works: true},
	} {
		for transport, open := range map[string]func(*Server) *dynamodb.Client{
			"memory":  func(s *Server) *dynamodb.Client { return s.Client(once) },
			"network": func(s *Server) *dynamodb.Client { return s.Network(t, once) },
		} {
			t.Run(tt.name+" by "+transport, func(t *testing.T) {
				server := New(t)
				client := open(server)
				server.SetFault(Fault{Action: "UpdateItem", Key: "k", Skip: 1, Times: 1, Do: tt.do})
				_, err := add(t.Context(), client, "k")
				require.NoError(t, err, "skipped")
				_, err = add(t.Context(), client, "other")
				require.NoError(t, err, "another key")

				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				out, err := add(ctx, client, "k")
				require.Equal(t, tt.works, err == nil, "%v", err)
				var coded interface{ ErrorCode() string }
				if tt.code != "" {
					require.ErrorAs(t, err, &coded)
					require.Equal(t, tt.code, coded.ErrorCode())
				}
				want := "1"
				if tt.applied {
					want = "2"
				}
				require.Equal(t, want, countOf(server.Item(t, "k")))
				if tt.name == "Lie" {
					require.Equal(t, "7", countOf(out.Attributes))
				}
				if tt.name == "Date" {
					date, ok := awsmiddleware.GetServerTime(out.ResultMetadata)
					require.True(t, ok)
					require.WithinDuration(t, time.Now().Add(time.Hour), date, 3*time.Second)
				}
				_, err = add(t.Context(), client, "k")
				require.NoError(t, err, "hit as often as was said")
				require.Equal(t, map[string]int{"UpdateItem": 4}, server.Actions())
				require.Equal(t, 4, server.Calls(""))
				server.ResetCalls()
				require.Zero(t, server.Calls("UpdateItem"))
			})
		}
	}
}

func TestThrottlingReasonsReachTheClient(t *testing.T) {
	server := New(t)
	for code, reasons := range map[string]func(error) []types.ThrottlingReason{
		"ThrottlingException": func(err error) []types.ThrottlingReason {
			e := new(types.ThrottlingException)
			require.ErrorAs(t, err, &e)
			return e.ThrottlingReasons
		},
		"ProvisionedThroughputExceededException": func(err error) []types.ThrottlingReason {
			e := new(types.ProvisionedThroughputExceededException)
			require.ErrorAs(t, err, &e)
			return e.ThrottlingReasons
		},
		"RequestLimitExceeded": func(err error) []types.ThrottlingReason {
			e := new(types.RequestLimitExceeded)
			require.ErrorAs(t, err, &e)
			return e.ThrottlingReasons
		},
	} {
		server.ClearFaults()
		server.SetFault(Fault{Do: Throttle(code, "A", "B")})
		_, err := add(t.Context(), server.Client(once), "k")
		got := reasons(err)
		require.Len(t, got, 2)
		require.Equal(t, "A", *got[0].Reason)
	}
}

func TestDownAndBlackhole(t *testing.T) {
	for transport, open := range map[string]func(*Server) *dynamodb.Client{
		"memory":  func(s *Server) *dynamodb.Client { return s.Client(once) },
		"network": func(s *Server) *dynamodb.Client { return s.Network(t, once) },
	} {
		t.Run(transport, func(t *testing.T) {
			server := New(t)
			client := open(server)
			for _, set := range []func(bool){server.SetDown, server.SetBlackhole} {
				set(true)
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				_, err := add(ctx, client, "k")
				cancel()
				require.Error(t, err)
				set(false)
			}
			require.Zero(t, server.Calls(""))
			_, err := add(t.Context(), client, "k")
			require.NoError(t, err)
		})
	}
}

// In a bubble nothing waits in real time, and Date tells the bubble's.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := New(t)
		began := time.Now()
		server.SetFault(Fault{Times: 1, Do: Hang()})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := add(ctx, server.Client(once), "k")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Hour, time.Since(began))
		out, err := add(t.Context(), server.Client(once), "k")
		require.NoError(t, err)
		date, ok := awsmiddleware.GetServerTime(out.ResultMetadata)
		require.True(t, ok)
		require.Equal(t, 2000, date.Year())
	})
}

func TestPutAndItem(t *testing.T) {
	server := New(t)
	require.Nil(t, server.Item(t, "k"))
	server.Put(t, "k", map[string]types.AttributeValue{"n": &types.AttributeValueMemberN{Value: "3"}})
	require.Equal(t, "3", countOf(server.Item(t, "k")))
	server.Put(t, "bare", nil)
	require.Len(t, server.Item(t, "bare"), 1)
	require.Zero(t, server.Calls(""))
}

// The bare engine shows the item of a failed condition too, and each has its own table.
func TestBare(t *testing.T) {
	client := Bare(t)
	update := &dynamodb.UpdateItemInput{
		TableName:                           aws.String(Table),
		Key:                                 map[string]types.AttributeValue{KeyAttribute: &types.AttributeValueMemberS{Value: "k"}},
		UpdateExpression:                    aws.String("ADD #n :one"),
		ConditionExpression:                 aws.String("attribute_not_exists(#n)"),
		ExpressionAttributeNames:            map[string]string{"#n": "n"},
		ExpressionAttributeValues:           map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	out, err := client.UpdateItem(t.Context(), update)
	require.NoError(t, err)
	require.Equal(t, "1", countOf(out.Attributes))
	_, err = client.UpdateItem(t.Context(), update)
	var failed *types.ConditionalCheckFailedException
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "1", countOf(failed.Item))
	_, err = Bare(t).UpdateItem(t.Context(), update)
	require.NoError(t, err)
}

// Dynalite rejects what real tables reject, and shows the item of a failed condition.
func TestDynalite(t *testing.T) {
	client := Dynalite(t)
	_, err := add(t.Context(), client, "k")
	require.NoError(t, err)
	update := &dynamodb.UpdateItemInput{
		TableName:                           aws.String(Table),
		Key:                                 map[string]types.AttributeValue{KeyAttribute: &types.AttributeValueMemberS{Value: "k"}},
		UpdateExpression:                    aws.String("REMOVE n"),
		ConditionExpression:                 aws.String("n > :m"),
		ExpressionAttributeValues:           map[string]types.AttributeValue{":m": &types.AttributeValueMemberN{Value: "1"}},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	_, err = client.UpdateItem(t.Context(), update)
	var failed *types.ConditionalCheckFailedException
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "1", countOf(failed.Item))

	update.ConditionExpression = aws.String("count > :m")
	_, err = client.UpdateItem(t.Context(), update)
	require.ErrorContains(t, err, "reserved keyword")

	_, err = client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(Table),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("x"), Enabled: aws.Bool(true)},
	})
	require.NoError(t, err)
}

// What is no request of the API is answered all the same, and counted.
func TestListen(t *testing.T) {
	server := New(t)
	resp, err := http.Get(server.Listen(t))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.NotEmpty(t, resp.Header.Get("Date"))
	require.Equal(t, 1, server.Calls(""))
}
