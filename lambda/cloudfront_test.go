package lambda_test

import (
	"context"
	"fmt"
	"testing"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
)

// Behind CloudFront the source address is CloudFront's, and all clients have it.
// The viewer's own counts if the request shows that it came through CloudFront.
func TestCloudFrontBeforeTheFunction(t *testing.T) {
	ways(t, func(t *testing.T, e entry, wrap func(*handler.Guard, func(context.Context, any)) awslambda.Handler) {
		h := wrap(newGuard(t, fivePerHour, func(cfg *handler.Config) {
			cfg.ClientIP = handler.CloudFront(handler.OriginSecret("X-Origin-Secret", "correct-horse-battery-staple"))
		}), ignore)
		ask := func(viewer, secret string, more ...string) int {
			lines := map[string]string{"cloudfront-viewer-address": viewer, "x-forwarded-for": "130.176.0.1"}
			if secret != "" {
				lines["x-origin-secret"] = secret
			}
			for _, name := range more {
				lines[name] = "203.0.113.200:1"
			}
			ev := e.headers(awsEvent(t, e.file), lines)
			if e.name != "alb" && !e.multi {
				ev = e.from(ev, "130.176.0.1", "203.0.113.200")
			}
			return status(invoke(t, h, ev))
		}
		for client := range 3 {
			for i := range 10 {
				want := 200
				if i >= 5 {
					want = 429
				}
				require.Equal(t, want, ask(fmt.Sprintf("2001:db8:0:%d::1:%d", client, 1024+i), "correct-horse-battery-staple"))
			}
		}
		// Around CloudFront, with an address made up for each request: all one client.
		passed := 0
		for i := range 20 {
			secret := []string{"", "guess", "correct-horse-battery-staple2"}[i%3]
			if ask(fmt.Sprintf("203.0.113.%d:1", i), secret) == 200 {
				passed++
			}
		}
		require.Equal(t, 5, passed)
		// Through it, with a second spelling of its header: no viewer, and the same key.
		require.Equal(t, 429, ask("203.0.113.9:1", "correct-horse-battery-staple", "CloudFront-Viewer-Address"))
		// An honest viewer still has his five.
		require.Equal(t, 200, ask("203.0.113.9:1", "correct-horse-battery-staple"))
	})
}
