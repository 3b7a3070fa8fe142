package handler

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

type inProcess struct{ http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.RemoteAddr = client
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Result(), nil
}

// A client that others wrote reads our Retry-After, waits so long and no longer, and
// is let in at its first new try.
func TestRetryingClientGetsIn(t *testing.T) {
	for _, tt := range []struct {
		name  string
		limit stores.Limit
		wait  time.Duration
	}{
		{"minutes", stores.FixedWindow(1, 10*time.Minute), 10 * time.Minute},
		{"part of a second", stores.FixedWindow(1, 200*time.Millisecond), time.Second},
		{"seconds and a part", stores.FixedWindow(1, 1500*time.Millisecond), 2 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := onMemory(t, Policy{Name: "p", Limit: tt.limit, Key: ByIP()})
				var statuses []int
				c := retryablehttp.NewClient()
				c.Logger = nil
				c.RetryMax = 3
				c.HTTPClient = &http.Client{Transport: inProcess{g.Handler(ok)}}
				c.ResponseLogHook = func(_ retryablehttp.Logger, r *http.Response) { statuses = append(statuses, r.StatusCode) }
				require.Equal(t, http.StatusOK, serve(g.Handler(ok), get(client)).Code)
				start := time.Now()
				response, err := c.Get("http://example.org/")
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				require.Equal(t, http.StatusOK, response.StatusCode)
				require.Equal(t, []int{429, 200}, statuses)
				require.Equal(t, tt.wait, time.Since(start))
			})
		})
	}
}

// What such a client waits after a refusal is what the refusal says, whatever its
// status; without Retry-After it waits as it likes.
func TestRetryAfterAsOthersReadIt(t *testing.T) {
	shared := newSharedStore(t)
	hidden := Policy{Name: "all", Limit: stores.FixedWindow(1, 1000*time.Second), Key: Everyone()}
	refuse := byIP("p", 5)
	refuse.Outage = stores.OutageRefuse
	for name, tt := range map[string]struct {
		h      http.Handler
		status int
		wait   time.Duration
	}{
		"429":         {exhausted(t, Config{}), 429, 10 * time.Minute},
		"429, hidden": {exhausted(t, Config{Policies: []Policy{hidden}}), 429, 1000 * time.Second},
		"503":         {guardOf(t, Config{Store: shared, Policies: []Policy{refuse}}).Handler(ok), 503, 0},
	} {
		shared.failWith(down)
		r := serve(tt.h, get(client)).Result()
		require.Equal(t, tt.status, r.StatusCode, name)
		wait := retryablehttp.DefaultBackoff(time.Millisecond, time.Hour, 0, r)
		if tt.wait == 0 {
			require.GreaterOrEqual(t, wait, time.Second, name)
			require.LessOrEqual(t, wait, 5*time.Second, name)
			continue
		}
		require.Equal(t, tt.wait, wait, name)
	}
}
