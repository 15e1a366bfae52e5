// Package front terminates TLS in front of the edge.
//
// In: the connection of a peer whose first byte is that of a TLS record. Out: a Link, whose Read and Write stand for
// those of the connection's socket: Read waits until the connection's read deadline, Write never waits. The edge's own
// limits, budgets and cuts therefore apply to such a peer. The link also has the names from the certificate that the
// peer has proved to own.
//
// The front itself has a goroutine only during a handshake, and while encrypted bytes that the socket does not take
// wait in a small buffer. Handing a publication to another goroutine for each subscriber would cost as much as the
// encryption. The amount of data between the peer and the edge is bounded in both directions: a peer that does not read
// is as visible to the edge as one without TLS. A handshake is limited in time, in size and in the
// certificates that it verifies (maxChain). Only a few compute at a time (Turns), so that handshakes leave processors
// to minions without TLS.
//
// Promises:
//
//   - nothing from the peer reaches the edge before the handshake is complete and the names are known;
//   - when either side ends, both connections are closed, and Wait returns when no goroutine is left;
//   - output that the edge has written before it ends is sent, unless the edge cuts the peer, or the peer does not read
//     in time.
//
// A connection with TLS cannot be handed to another process, because crypto/tls does not export its keys.
package front
