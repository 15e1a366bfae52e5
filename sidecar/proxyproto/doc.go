// Package proxyproto reads the header in which a load balancer names the client of a connection: HAProxy's PROXY
// protocol, version 1 (a line of text) and version 2 (binary).
//
// In: the first bytes of a connection. Out: the address of the client and where its own bytes begin, or that more bytes
// are needed, or why this is not a header. The package is pure and keeps nothing. The caller decides whether the sender
// is trusted, and how long to wait.
//
// Promises: at most MaxHeader bytes are ever asked for; exactly the headers that the specification defines are
// accepted, so that no two readers of the same bytes see different clients; no input causes a panic.
//
// Specification: https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt
package proxyproto
