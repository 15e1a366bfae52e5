// Package front terminates TLS in front of the edge.
//
// In: the connection of a peer whose first byte is that of a TLS record. Out: a Link. One end of a local stream carries
// the decrypted bytes to the edge, as if the peer had connected without TLS. The edge's output goes through Write,
// which, like a non-blocking socket, never waits. The edge's own limits, budgets and cuts therefore apply to such a
// peer. The link also has the names from the certificate that the peer has proved to own.
//
// One goroutine reads a connection. Output is encrypted in the goroutine that calls Write: handing a publication to
// another goroutine for each subscriber would cost as much as the encryption. Encrypted bytes that the socket does not
// take wait in a small buffer, which a goroutine sends. The amount of data between the peer and the edge is bounded in
// both directions: a peer that does not read is as visible to the edge as one without TLS. A handshake is limited in
// time and size. Only a few signatures are made at a time (Turns), so that handshakes leave processors to minions
// without TLS.
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
