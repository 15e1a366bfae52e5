// Package tcpframe is the framing of Salt's tcp transport: what minions with `transport: tcp` put on a connection, and
// what they read from one.
//
// A connection is a stream of msgpack maps {"head": {…}, "body": …} without a length in front. On the request port the
// body is the envelope that zeromq carries as a message, and the head is {"mid": …}, which the reply repeats; requests
// are pipelined and replies come in any order. On the publish port a minion sends one frame, whose body names it
// (AsyncPubChannel.send_id), and reads frames with an empty head. A master of 3006 sends a publication as the map that
// it is, one of 3007 or 3008 as the bytes of that map. Minions of 3006 read both, those of 3007 and 3008 only bytes;
// AppendPublication writes bytes.
//
// In: any bytes, any number at a time. Out: Frames, whose values are parts of the input or of what the Decoder kept;
// the Append functions produce the other direction. The package owns no socket and starts no goroutine.
//
// Promises: no input makes it panic; a size is checked when it is announced, before memory is taken for it; a frame
// that arrives slowly takes memory only for the bytes that have arrived; each byte is read once.
package tcpframe
