package handler

import (
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// A visitor who changes his plan keeps what he has used, up and down and up again,
// and neither refusals nor their memory from one plan hold on another.
func TestPlansShareWhatWasUsed(t *testing.T) {
	for _, path := range []string{"memory", "shared", "shared down"} {
		synctest.Test(t, func(t *testing.T) {
			var store stores.Store // nil: memory
			if path != "memory" {
				s := newSharedStore(t)
				if store = s; path == "shared down" {
					s.fail = down
				}
			}
			p := byIP("plan", 3)
			p.LimitBy = func(r *http.Request) stores.Limit {
				quota, _ := strconv.Atoi(r.Header.Get("Plan"))
				limit := stores.FixedWindow(quota, 10*time.Minute)
				if r.Header.Get("Window") != "" {
					limit.Window = time.Hour
				}
				return limit
			}
			p.Cost = func(r *http.Request) int {
				cost, _ := strconv.Atoi(r.Header.Get("Cost"))
				return cost
			}
			g := guardOf(t, Config{Store: store, Policies: []Policy{p}})
			for i, tt := range []struct {
				plan, cost string
				allowed    bool
				remaining  int
				field      string
			}{
				{"10", "4", true, 6, `"plan";q=10;w=600`},
				{"3", "", false, 0, `"plan";q=3;w=600`},
				{"10", "", true, 5, `"plan";q=10;w=600`},
				{"0", "", false, 0, `"plan";q=3;w=600`}, // no limit at all: the policy's own
				{"6", "2", false, 1, `"plan";q=6;w=600`},
				{"6", "", true, 0, `"plan";q=6;w=600`},
				{"6", "", false, 0, `"plan";q=6;w=600`},
				{"100", "94", true, 0, `"plan";q=100;w=600`},
				{"100", "101", false, 0, `"plan";q=100;w=600`},
				{"101", "", true, 0, `"plan";q=101;w=600`},
			} {
				w := serve(g.Handler(ok), get(client, "Plan", tt.plan, "Cost", tt.cost))
				require.Equal(t, tt.allowed, w.Code == http.StatusOK, "%s %d", path, i)
				require.Equal(t, tt.field, w.Header().Get("RateLimit-Policy"), "%d", i)
				if _, state := readField(t, w.Header().Values("RateLimit")); len(state) > 0 {
					require.Equal(t, int64(tt.remaining), state["plan"]["r"], "%d", i)
				}
			}
			require.True(t, g.Check(get(client, "Plan", "1", "Window", "1h")).Allowed, "another window is another counter")
			time.Sleep(10 * time.Minute)
			for i := range 4 {
				require.Equal(t, i < 3, g.Check(get(client, "Plan", "3")).Allowed, "the window ends for all plans at once")
			}
			require.True(t, g.Check(get(client, "Plan", "4")).Allowed)
		})
	}
}
