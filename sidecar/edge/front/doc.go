// Package front terminates TLS in front of the edge.
//
// In: the connection of a peer whose first byte is that of a TLS record. Out: a Link, one end of a local stream on
// which the edge finds what the peer says inside, as if it had connected without TLS. So the edge's own limits,
// budgets and cuts count for such a peer, and the link gives it the names in the certificate that the peer has proved
// to own.
//
// Two goroutines of the front carry a connection's bytes, one for each direction. What waits between the peer and the
// edge is bounded by the buffers of the local stream, which are small: a peer that does not read is as visible to the
// edge as one without TLS. A handshake has a limit of time and size. Signatures are made a few at a time (Turns), so
// that handshakes leave processors to minions without TLS.
//
// Promises:
//
//   - nothing that the peer says reaches the edge before the handshake is complete and the names are known;
//   - when either side ends, both connections are closed, and Wait returns when no goroutine is left;
//   - what the edge has written before it ends is sent, unless the edge cuts the peer or it does not read in time.
//
// A connection with TLS cannot be handed to another process, because crypto/tls keeps its keys to itself.
package front
