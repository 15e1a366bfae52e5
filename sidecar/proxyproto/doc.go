// Package proxyproto reads the header in which a load balancer names the client of a connection: HAProxy's PROXY
// protocol, version 1 (a line of text) and version 2 (binary).
//
// In: the first bytes of a connection. Out: the address of the true peer and where its own bytes begin, or that more
// bytes are needed, or why this is not a header. The package is pure and keeps nothing; the caller has to know whether
// the sender may be believed, and how long to wait.
//
// Promises: at most MaxHeader bytes are ever asked for; what is accepted is exactly what the specification writes, so
// that no two readers of the same bytes see different peers; no input panics.
//
// Specification: https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt
package proxyproto
