package dynamo

import (
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

// newStore returns one more instance over the table that client leads to.
func newStore(t testing.TB, client Client) *Store {
	t.Helper()
	s, err := New(Config{Client: client, Table: dynamotest.Table, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return s
}

func hit(key string, quota int, window time.Duration) stores.Hit {
	return stores.Hit{Key: key, Limit: stores.FixedWindow(quota, window)}
}

func TestNewFailsLoudly(t *testing.T) {
	client := dynamotest.New(t).Client()
	for _, tt := range []struct {
		name string
		cfg  Config
		want string // "" means no error
	}{
		{"good", Config{Client: client, Table: "abc"}, ""},
		{"ARN", Config{Client: client, Table: "arn:aws:dynamodb:us-east-1:123456789012:table/limits"}, ""},
		{"longest", Config{Client: client, Table: strings.Repeat("t", 255)}, ""},
		{"nothing", Config{}, "no client"},
		{"nil client", Config{Table: "limits"}, "no client"},
		{"typed nil client", Config{Client: (*dynamodb.Client)(nil), Table: "limits"}, "no client"},
		{"no table", Config{Client: client}, "0 bytes"},
		{"short table", Config{Client: client, Table: "ab"}, "2 bytes"},
		{"long table", Config{Client: client, Table: strings.Repeat("t", 256)}, "256 bytes"},
		{"space in table", Config{Client: client, Table: "my table"}, "byte 2"},
		{"slash in table", Config{Client: client, Table: "a/bc"}, "byte 1"},
		{"quoted table", Config{Client: client, Table: `"limits"`}, "byte 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := New(tt.cfg)
			if tt.want == "" {
				require.NoError(t, err)
				require.NotNil(t, s)
				return
			}
			require.ErrorIs(t, err, stores.ErrMisconfigured)
			require.ErrorContains(t, err, tt.want)
			require.Nil(t, s)
		})
	}
}

// everyMethod calls each method of s that takes a hit.
func everyMethod(t *testing.T, s *Store, h stores.Hit) map[string]error {
	t.Helper()
	ctx := t.Context()
	errs := make(map[string]error)
	_, errs["Take"] = s.Take(ctx, h)
	_, errs["TakeAll"] = s.TakeAll(ctx, []stores.Hit{h}, make([]stores.Decision, 1))
	_, errs["TakeOwing"] = s.TakeOwing(ctx, h, 1, min(time.Millisecond, max(0, h.Limit.Window)))
	_, errs["Peek"] = s.Peek(ctx, h)
	errs["Reset"] = s.Reset(ctx, h)
	errs["Refund"] = s.Refund(ctx, h)
	return errs
}

func TestNilStoreIsMisconfiguredAndDoesNotPanic(t *testing.T) {
	for _, s := range []*Store{nil, {}} {
		for method, err := range everyMethod(t, s, hit("k", 1, time.Second)) {
			require.ErrorIs(t, err, stores.ErrMisconfigured, method)
			require.True(t, fault.Definite(err), method)
		}
	}
}

// Limits and hits out of bounds are turned away without a call.
func TestInvalidAndUnsupportedHitsMakeNoCall(t *testing.T) {
	server := dynamotest.New(t)
	s := newStore(t, server.Client())
	good := hit("k", 5, time.Minute)
	with := func(f func(*stores.Hit)) stores.Hit {
		h := good
		f(&h)
		return h
	}
	for name, h := range map[string]stores.Hit{
		"quota 0":         with(func(h *stores.Hit) { h.Limit.Quota = 0 }),
		"quota -1":        with(func(h *stores.Hit) { h.Limit.Quota = -1 }),
		"quota MinInt":    with(func(h *stores.Hit) { h.Limit.Quota = math.MinInt }),
		"quota MaxInt":    with(func(h *stores.Hit) { h.Limit.Quota = math.MaxInt }),
		"window 0":        with(func(h *stores.Hit) { h.Limit.Window = 0 }),
		"window below ms": with(func(h *stores.Hit) { h.Limit.Window = time.Microsecond }),
		"no key":          with(func(h *stores.Hit) { h.Key = "" }),
		"long key":        with(func(h *stores.Hit) { h.Key = strings.Repeat("k", 513) }),
		"odd key":         with(func(h *stores.Hit) { h.Key = "k\n" }),
		"cost -1":         with(func(h *stores.Hit) { h.Cost = -1 }),
	} {
		for method, err := range everyMethod(t, s, h) {
			require.ErrorIs(t, err, stores.ErrInvalid, "%s: %s", name, method)
		}
	}
	for _, limit := range []stores.Limit{stores.SlidingLog(101, time.Minute), stores.SlidingLog(101, time.Minute).BlockFor(time.Hour)} {
		require.ErrorIs(t, s.Supports(limit), errors.ErrUnsupported)
		require.ErrorContains(t, s.Supports(limit), "use a sliding window")
		for method, err := range everyMethod(t, s, stores.Hit{Key: "k", Limit: limit}) {
			require.ErrorIs(t, err, errors.ErrUnsupported, "%v: %s", limit, method)
		}
	}
	for _, limit := range everyLimit(100, time.Minute) {
		require.NoError(t, s.Supports(limit))
		require.NoError(t, s.Supports(limit.BlockFor(time.Hour)))
	}
	require.NoError(t, s.Supports(stores.Cooldown(time.Minute)))
	require.Empty(t, server.Actions())
}

func TestTakeAllWantsRoomForItsDecisions(t *testing.T) {
	server := dynamotest.New(t)
	n, err := newStore(t, server.Client()).TakeAll(t.Context(), make([]stores.Hit, 2), make([]stores.Decision, 1))
	require.ErrorIs(t, err, stores.ErrInvalid)
	require.Zero(t, n)
	require.Empty(t, server.Actions())
}
