package handler

// HeaderStyle is the form in which a response tells the limits. Retry-After on a
// refusal does not depend on it. The zero value is HeadersDraft8.
type HeaderStyle uint8

// The styles.
const (
	// HeadersDraft8 writes RateLimit-Policy: "name";q=5;w=600 and
	// RateLimit: "name";r=4;t=412, the syntax of the IETF's
	// draft-ietf-httpapi-ratelimit-headers-08 to -11, in one line each: quota,
	// window in seconds, what remains, and the seconds until the quota is back, or on
	// a refusal until the request may be tried again.
	HeadersDraft8 HeaderStyle = iota

	// HeadersLegacy writes X-RateLimit-Limit, X-RateLimit-Remaining and
	// X-RateLimit-Reset, the last in seconds from now, for the policy that has refused or
	// is nearest to it.
	HeadersLegacy

	// HeadersOff writes neither.
	HeadersOff
)
