package sallyport_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/dynamo"
	"github.com/sallyport/sallyport/stores/failover"
	"github.com/sallyport/sallyport/stores/upstash"
)

// shared is what a store of the README's table has in common.
type shared interface {
	stores.Store
	stores.Peeker
	stores.Resetter
	stores.Refunder
}

// costs goes through the rows of the table in their order. spent says what it cost
// since it was last asked.
func costs(t *testing.T, open func() shared, spent func() string) map[string]string {
	ctx := context.Background()
	limit := stores.FixedWindow(2, time.Hour)
	take := func(s stores.Store, key string, allowed bool) string {
		t.Helper()
		d, err := s.Take(ctx, stores.Hit{Key: key, Limit: limit})
		require.NoError(t, err)
		require.Equal(t, allowed, d.Allowed)
		return spent()
	}
	here, elsewhere := open(), open()
	rows := make(map[string]string)
	spent()
	rows["first hit on a key here"] = take(here, "a", true)
	rows["further hits"] = take(here, "a", true)
	rows["refused by the store"] = take(here, "a", false)
	take(elsewhere, "b", true)
	rows["first hit here, window opened by another instance"] = take(here, "b", true)

	costing := func(key string, cost int, allowed bool) string {
		t.Helper()
		d, err := here.Take(ctx, stores.Hit{Key: key, Limit: stores.FixedWindow(5, time.Hour), Cost: cost})
		require.NoError(t, err)
		require.Equal(t, allowed, d.Allowed)
		return spent()
	}
	costing("c", 2, true) // which brings the script along
	rows["a cost above 1: first hit in a window"] = costing("d", 2, true)
	rows["a cost above 1: further hits"] = costing("d", 2, true)
	rows["a cost above 1: refused by the store"] = costing("d", 2, false)
	require.NoError(t, here.Refund(ctx, stores.Hit{Key: "d", Limit: stores.FixedWindow(5, time.Hour), Cost: 2}))
	rows["`Refund`"] = spent()

	other := func(s stores.Store, key string, limit stores.Limit, allowed bool) string {
		t.Helper()
		d, err := s.Take(ctx, stores.Hit{Key: key, Limit: limit})
		require.NoError(t, err)
		require.Equal(t, allowed, d.Allowed)
		return spent()
	}
	for i, limit := range []stores.Limit{stores.SlidingWindow(2, time.Hour), stores.TokenBucket(2, time.Hour), stores.LeakyBucket(2, time.Hour)} {
		key := fmt.Sprint("other", i)
		rows["other limits: let through"] = other(here, key, limit, true)
		require.Equal(t, rows["other limits: let through"], other(here, key, limit, true))
		rows["other limits: refused"] = other(here, key, limit, false)
		other(elsewhere, key+"b", limit, true)
		rows["other limits: first hit here, another instance was first"] = other(here, key+"b", limit, true)
		_, err := here.Peek(ctx, stores.Hit{Key: key, Limit: limit})
		require.NoError(t, err)
		rows["other limits: `Peek`"] = spent()
		require.NoError(t, here.Refund(ctx, stores.Hit{Key: key, Limit: limit}))
		rows["other limits: `Refund`"] = spent()
		limit = limit.BlockFor(time.Hour)
		other(here, key+"c", limit, true)
		other(here, key+"c", limit, true)
		rows["other limits: refused, which starts a block"] = other(here, key+"c", limit, false)
		require.Equal(t, rows["other limits: refused"], other(here, key+"c", limit, false))
	}

	guarded, err := failover.New(here, failover.Config{})
	require.NoError(t, err)
	take(guarded, "a", false)
	for range 100 {
		rows["refused again, while the refusal is remembered"] = take(guarded, "a", false)
	}
	_, err = here.Peek(ctx, stores.Hit{Key: "a", Limit: limit})
	require.NoError(t, err)
	rows["`Peek`"] = spent()
	require.NoError(t, here.Reset(ctx, stores.Hit{Key: "a", Limit: limit}))
	rows["`Reset`"] = spent()
	return rows
}

// What the README says that a decision costs is what it costs.
func TestReadmeCosts(t *testing.T) {
	table := cells(paper(t, "README.md"))
	redis := upstashtest.New(t)
	table1 := costs(t, func() shared {
		s, err := upstash.New(upstash.Config{URL: redis.URL, Token: redis.Token})
		require.NoError(t, err)
		return s
	}, func() string {
		exchanges, commands := redis.Requests(), redis.Billed()
		redis.Forget()
		return counted(exchanges, "exchange", commands, "command")
	})
	engine := dynamotest.New(t)
	table2 := costs(t, func() shared {
		s, err := dynamo.New(dynamo.Config{Client: engine.Client(), Table: dynamotest.Table})
		require.NoError(t, err)
		return s
	}, func() string {
		writes, reads := engine.Calls("UpdateItem")+engine.Calls("DeleteItem"), engine.Calls("GetItem")
		require.Equal(t, writes+reads, engine.Calls(""))
		engine.ResetCalls()
		return counted(writes, "write", reads, "strongly consistent read")
	})
	for row := range table1 {
		require.Equal(t, []string{table1[row], table2[row]}, table[row][:2], row)
	}
}

// counted is "1 exchange, 3 commands", or "nothing".
func counted(n int, what string, m int, more string) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{n, what}, {m, more}} {
		switch p.n {
		case 0:
		case 1:
			parts = append(parts, "1 "+p.what)
		default:
			parts = append(parts, fmt.Sprintf("%d %ss", p.n, p.what))
		}
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
