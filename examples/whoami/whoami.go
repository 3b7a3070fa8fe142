package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"net/netip"

	"github.com/sallyport/sallyport/handler"
)

// whoami is the whole program as a handler.
type whoami struct {
	guard    *handler.Guard
	policies []handler.Policy
	strategy string
	token    [sha256.Size]byte // its hash, so that a comparison tells no length either
}

// answer is what a caller sees.
type answer struct {
	Address      string    `json:"address"` // as the guard finds it; "" if none is proven
	Proven       bool      `json:"proven"`
	Strategy     string    `json:"client_ip"`
	Peer         string    `json:"peer"` // who opened the connection
	ForwardedFor []string  `json:"x_forwarded_for"`
	Status       int       `json:"status,omitempty"` // with which the guard would refuse this request whatever is counted
	Counted      []counted `json:"counted"`
	Notes        []string  `json:"notes"`
}

// counted is what one policy makes of the request.
type counted struct {
	Policy   string `json:"policy"`
	Limit    string `json:"limit"`
	Key      string `json:"key"`
	StoreKey string `json:"store_key"`
}

func (s *whoami) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	given := sha256.Sum256([]byte(r.Header.Get("Whoami-Token")))
	if subtle.ConstantTimeCompare(given[:], s.token[:]) != 1 || r.URL.Path != "/whoami" {
		http.NotFound(w, r)
		return
	}
	keys := new(seen)
	v := s.guard.Check(r.WithContext(context.WithValue(r.Context(), seenKey{}, keys)))
	addr := s.guard.ClientAddr(r)
	a := answer{
		Proven:       addr.IsValid(),
		Strategy:     s.strategy,
		Peer:         r.RemoteAddr,
		ForwardedFor: append([]string{}, r.Header["X-Forwarded-For"]...),
		Status:       v.Status,
		Counted:      []counted{},
		Notes:        notes(s.strategy, addr, r),
	}
	if addr.IsValid() {
		a.Address = addr.String()
	}
	for i, hit := range keys.hits {
		if i == len(v.Outcomes) {
			break
		}
		c := counted{Policy: v.Outcomes[i].Policy, Limit: hit.Limit.String(), StoreKey: hit.Key}
		for _, p := range s.policies {
			if p.Name == c.Policy {
				c.Key = p.Key.String()
			}
		}
		a.Counted = append(a.Counted, c)
	}
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	_ = out.Encode(a) // it fails only when the client has gone
}

// notes are what is likely to be amiss.
func notes(strategy string, addr netip.Addr, r *http.Request) []string {
	list := []string{}
	switch {
	case !addr.IsValid():
		list = append(list, "no address is proven: requests like this one are counted by the peer's address, apart from others")
	case addr.IsPrivate() || addr.IsLinkLocalUnicast() || addr.IsLoopback():
		list = append(list, "this address is none of the internet: unless you are on the same network, it is a proxy's, and all visitors share one limit")
	}
	if strategy == handler.Direct().String() && len(r.Header["X-Forwarded-For"]) > 0 {
		list = append(list, "X-Forwarded-For is there and is not read: right if you wrote it yourself, wrong if a proxy did")
	}
	return list
}
