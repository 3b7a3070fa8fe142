// Package apiproxy shows the guard behind AWS's api-proxy adapters, for programs that use
// one of them already; package lambda needs none. It is a module of its own because
// the adapters require eight web frameworks.
//
// An adapter makes an http.Request of the event by itself, with an address and no port in
// RemoteAddr, so [handler.Direct] is right there too. What it hands over of an event's
// claims package handler does not know: keys by handler.ByClaim count by the address.
package apiproxy
