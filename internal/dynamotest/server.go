package dynamotest

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	minidyn "github.com/truora/minidyn/server"
)

// Table is the name of the one table that each engine of this package starts with;
// its hash key is the string attribute KeyAttribute.
const (
	Table        = "sallyport-limits"
	KeyAttribute = "pk"
)

// Server is an engine with one table, and with faults. It is safe for concurrent
// use.
type Server struct {
	engine http.Handler

	mu     sync.Mutex
	calls  map[string]int
	faults []*armed
	dial   dialState
}

type dialState uint8

const (
	reachable dialState = iota
	refused
	blackholed
)

// New returns a Server with an empty table.
func New(t testing.TB) *Server {
	t.Helper()
	s, err := Start()
	if err != nil {
		t.Fatalf("dynamotest: %v", err)
	}
	return s
}

// Start is New for an Example, which has no testing.TB. Nothing has to be stopped.
func Start() (*Server, error) {
	s := &Server{engine: minidyn.NewServer(), calls: make(map[string]int)}
	return s, createTable(context.Background(), s.direct())
}

// createTable makes Table. minidyn and dynalite serve it as soon as it is listed.
func createTable(ctx context.Context, client *dynamodb.Client) error {
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String(Table),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(KeyAttribute), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(KeyAttribute), KeyType: types.KeyTypeHash}},
	})
	return err
}

// SetDown makes the server refuse connections, as a closed port does, or accept
// them again. Refused connections are not counted as calls.
func (s *Server) SetDown(down bool) { s.setDial(down, refused) }

// SetBlackhole makes dialling hang until the caller's context is done, or ends that.
func (s *Server) SetBlackhole(on bool) { s.setDial(on, blackholed) }

func (s *Server) setDial(on bool, to dialState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dial = reachable; on {
		s.dial = to
	}
}

func (s *Server) dialState() dialState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dial
}

// Calls returns how many requests for the API action ("UpdateItem") arrived, each
// attempt counted, also those that a fault swallowed. "" means all actions.
func (s *Server) Calls(action string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if action != "" {
		return s.calls[action]
	}
	n := 0
	for _, c := range s.calls {
		n += c
	}
	return n
}

// Actions returns the calls by API action.
func (s *Server) Actions() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// ResetCalls sets all counts to 0.
func (s *Server) ResetCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.calls)
}

// Item returns what the table holds under key, nil if nothing. It neither counts
// as a call nor meets a fault; nor does Put.
func (s *Server) Item(t testing.TB, key string) map[string]types.AttributeValue {
	t.Helper()
	out, err := s.direct().GetItem(context.Background(), &dynamodb.GetItemInput{
		TableName:      aws.String(Table),
		ConsistentRead: aws.Bool(true),
		Key:            map[string]types.AttributeValue{KeyAttribute: &types.AttributeValueMemberS{Value: key}},
	})
	if err != nil {
		t.Fatalf("dynamotest: %v", err)
	}
	return out.Item
}

// Put lays an item under key; attributes need not repeat the key.
func (s *Server) Put(t testing.TB, key string, attributes map[string]types.AttributeValue) {
	t.Helper()
	item := maps.Clone(attributes)
	if item == nil {
		item = make(map[string]types.AttributeValue, 1)
	}
	item[KeyAttribute] = &types.AttributeValueMemberS{Value: key}
	if _, err := s.direct().PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String(Table), Item: item}); err != nil {
		t.Fatalf("dynamotest: %v", err)
	}
}
