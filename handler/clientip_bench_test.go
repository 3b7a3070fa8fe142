package handler

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// usualRequests are what a guard sees all day, by strategy.
func usualRequests() map[string]struct {
	c ClientIP
	r *http.Request
} {
	type usual = struct {
		c ClientIP
		r *http.Request
	}
	request := func(remote string, header http.Header) *http.Request {
		return &http.Request{RemoteAddr: remote, Header: header}
	}
	front := http.Header{
		"Cloudfront-Viewer-Address": {"2001:db8::1:46532"},
		"X-Origin-Secret":           {"correct-horse-battery-staple-32!"},
	}
	return map[string]usual{
		"direct":     {Direct(), request("203.0.113.9:40000", nil)},
		"direct6":    {Direct(), request("[2001:db8::9]:40000", nil)},
		"direct/fe":  {Direct(), request("[fe80::1%eth0]:40000", nil)},
		"cloudrun":   {CloudRun(), request("169.254.1.1:1", http.Header{"X-Forwarded-For": {"9.9.9.9, 203.0.113.9"}})},
		"googlelb":   {GoogleLB(), request("169.254.1.1:1", http.Header{"X-Forwarded-For": {"203.0.113.9, 35.191.0.1"}})},
		"two lines":  {GoogleLB(), request("169.254.1.1:1", http.Header{"X-Forwarded-For": {"203.0.113.9", "35.191.0.1"}})},
		"64 KiB":     {CloudRun(), request("169.254.1.1:1", http.Header{"X-Forwarded-For": {strings.Repeat("9.9.9.9,", 8<<10) + "203.0.113.9"}})},
		"proxies":    {TrustedProxies(mustPrefixes("169.254.0.0/16", "35.191.0.0/16")...), request("169.254.1.1:1", http.Header{"X-Forwarded-For": {"203.0.113.9, 35.191.0.1"}})},
		"cloudfront": {CloudFront(OriginSecret("X-Origin-Secret", "correct-horse-battery-staple-32!")), request("130.176.0.1:1", front)},
		"header":     {HeaderAddr("X-Real-Ip", FromPeers(mustPrefixes("10.0.0.0/8")...)), request("10.0.0.1:1", http.Header{"X-Real-Ip": {"203.0.113.9"}})},
	}
}

func TestResolveAllocatesNothing(t *testing.T) {
	for name, u := range usualRequests() {
		_, state := u.c.resolve(u.r)
		require.Equal(t, addrOK, state, name)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			a, _ := u.c.resolve(u.r)
			_ = maskAddr(a, 32, 64)
		}), name)
	}
}

func BenchmarkResolve(b *testing.B) {
	for name, u := range usualRequests() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				u.c.resolve(u.r)
			}
		})
	}
}
