// Package wsframe is the framing of Salt's ws transport: what minions with `transport: ws` put on a connection, and
// what they read from one (salt/transport/ws.py, Salt 3007 and later).
//
// A connection is a WebSocket: an HTTP request with any path, an answer, and messages. On the request port a binary
// message is the envelope that zeromq carries as a message, the reply is another, and Salt opens a connection for each
// request. On the publish port a minion says nothing; a binary message is the payload of a publication as msgpack
// bytes. Nothing is compressed: no extension is agreed to.
//
// In: any bytes, in pieces of any size. Out: Events, whose bytes are parts of the input or of the Decoder's buffer; the
// Append functions produce the other direction. The package owns no socket and starts no goroutine. The protocol itself
// is that of github.com/gobwas/ws.
//
// Promises: no input makes it panic; a size is checked when it is announced, before memory is allocated for it; a
// message takes no more memory than in proportion to what has arrived of it.
package wsframe
