package upstashtest

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestUpstashsOwnClients runs @upstash/redis and @upstash/ratelimit against the double:
// who wrote them knows the real server. `npm ci` in the folder npm brings them.
func TestUpstashsOwnClients(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		Missing(t, "node")
	}
	if _, err := os.Stat("npm/node_modules/@upstash/ratelimit"); err != nil {
		Missing(t, "npm/node_modules (npm ci)")
	}
	for name, open := range map[string]func(testing.TB) *Server{"miniredis": New, "redis-server": NewReal} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, "interop.mjs")
			cmd.Dir = "npm"
			cmd.Env = append(os.Environ(), "UPSTASH_REDIS_REST_URL="+s.URL, "UPSTASH_REDIS_REST_TOKEN="+s.Token)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			t.Logf("%s", out)
		})
	}
}
