package dynamo

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
)

func TestRefund(t *testing.T) {
	for _, tt := range []struct {
		name  string
		n     int // in the table; -1 means no item
		over  bool
		cost  int
		want  int64
		calls int
	}{
		{"one", 3, false, 1, 2, 1},
		{"0 is 1", 3, false, 0, 2, 1},
		{"all", 3, false, 3, 0, 1},
		{"more than is there", 3, false, 4, 0, 2},
		{"much more", 3, false, math.MaxInt, 0, 2},
		{"of nothing", 0, false, 1, 0, 1},
		{"too late", 3, true, 1, 3, 1},
		{"too late, and too much", 3, true, 9, 3, 1},
		{"of a key that is not there", -1, false, 1, -1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := dynamotest.New(t)
				s, h := newStore(t, server.Client()), hit("k", 5, time.Minute)
				h.Cost = tt.cost
				end := time.Now().Add(time.Minute).UnixMilli()
				if tt.over {
					end = time.Now().UnixMilli()
				}
				if tt.n >= 0 {
					server.Put(t, h.Key, item(tt.n, end))
				}
				require.NoError(t, s.Refund(t.Context(), h))
				require.Equal(t, map[string]int{"UpdateItem": tt.calls}, server.Actions())
				w, there := stored(t, server, h.Key)
				require.Equal(t, tt.want >= 0, there, "no refund makes an item")
				if there && !tt.over {
					d, err := s.Peek(t.Context(), hit("k", 5, time.Minute))
					require.NoError(t, err)
					require.Equal(t, 5-int(w.n), d.Remaining)
					require.Equal(t, w.n > 0, d.ResetAfter > 0, "the whole quota is back already, or not")
				}
				if there {
					require.Equal(t, window{tt.want, end}, w, "no refund moves an end")
				}
			})
		})
	}
}

// A refund whose answer was lost may count; it is not sent again.
func TestRefundIsNotReplayed(t *testing.T) {
	server := dynamotest.New(t)
	s, h := newStore(t, server.Client()), hit("k", 5, time.Minute)
	for range 5 {
		take(t, s, h)
	}
	server.SetFault(dynamotest.Fault{Times: 1, Do: dynamotest.DropAfter()})
	require.False(t, asFault(t, s.Refund(t.Context(), h)).Definite)
	w, _ := stored(t, server, h.Key)
	require.Equal(t, int64(4), w.n)
}
