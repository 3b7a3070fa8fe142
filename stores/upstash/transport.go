package upstash

import (
	"net"
	"net/http"
	"time"
)

// newTransport makes the transport of a store that was given none. timeout bounds
// dials and handshakes on their own as well, because net/http lets a dial go on for
// later requests when the one that asked for it has given up.
func newTransport(timeout time.Duration) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: timeout}).DialContext,
		TLSHandshakeTimeout: timeout,
		Protocols:           &protocols,

		// The age of an idle connection is taken by the wall clock when it is to be
		// used again, so this holds for an instance that was frozen too.
		IdleConnTimeout: 5 * time.Second,

		// One instance of a container serves hundreds of requests at once, and all go
		// to this one host; the default of 2 would make most of them dial anew.
		MaxIdleConns:        256,
		MaxIdleConnsPerHost: 256,

		// Answers are some forty bytes, and a zipped one could be a bomb.
		DisableCompression:     true,
		MaxResponseHeaderBytes: 16 << 10,
	}
}
