package handler_test

import (
	"fmt"
	"net/netip"

	"github.com/sallyport/sallyport/handler"
)

// Which strategy for which platform. Choose the one line that fits, deploy, and send
// one request with a forged "X-Forwarded-For: 203.0.113.1": the guard must not see
// that address.
func ExampleClientIP() {
	// AWS Lambda behind API Gateway (HTTP API, REST API), a Function URL or an ALB, in
	// any wrapper of package lambda; a server with a public address of its own.
	fmt.Println(handler.Direct())

	// Cloud Run under its run.app address or a mapped domain.
	fmt.Println(handler.CloudRun())

	// Cloud Run behind an external Application Load Balancer. Set the ingress to
	// internal-and-cloud-load-balancing.
	fmt.Println(handler.GoogleLB())

	// CloudFront in front of a Function URL, an API or a bucket of servers: CloudFront
	// adds a secret header to origin requests, and the origin request policy contains
	// CloudFront-Viewer-Address.
	fmt.Println(handler.CloudFront(handler.OriginSecret("X-Origin-Secret", "kept elsewhere, 32 random characters")))

	// The same with a Function URL of AWS_IAM and CloudFront's origin access control,
	// which closes the way around.
	fmt.Println(handler.CloudFront(handler.Unproven()))

	// Two proxies in a row that each append to X-Forwarded-For, and nobody can go
	// around either.
	fmt.Println(handler.TrustedHops(2))

	// Proxies that are known by their networks. Whoever comes from elsewhere is taken
	// for himself.
	fmt.Println(handler.TrustedProxies(netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")))

	// nginx on the same host with "proxy_set_header X-Real-IP $remote_addr".
	fmt.Println(handler.HeaderAddr("X-Real-Ip", handler.FromPeers(netip.MustParsePrefix("127.0.0.0/8"))))

	// Rather refuse than count apart what does not look as expected.
	fmt.Println(handler.GoogleLB().Strict())

	// Output:
	// direct
	// cloudrun
	// googlelb
	// cloudfront:secret=X-Origin-Secret,...
	// cloudfront:unproven
	// hops:2
	// proxies:10.0.0.0/8,fd00::/8
	// header:X-Real-Ip:peers=127.0.0.0/8
	// googlelb strict
}

// The strategy as configuration: from an environment variable, or from JSON by
// UnmarshalText.
func ExampleParseClientIP() {
	c, err := handler.ParseClientIP("proxies:10.0.0.0/8,2001:db8::/32 strict")
	fmt.Println(c, err)

	_, err = handler.ParseClientIP("hops:0")
	fmt.Println(err)

	_, err = handler.ParseClientIP("cloudfront")
	fmt.Println(err)
	// Output:
	// proxies:10.0.0.0/8,2001:db8::/32 strict <nil>
	// client address "hops": invalid: 0 trusted hops: want 1 to 32, or Direct where no proxy appends
	// client address "cloudfront": invalid: no proof that a request came through the proxy: want secret=HEADER,ENV_NAME or peers=PREFIX,... or unproven at the end
}
