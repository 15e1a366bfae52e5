// Package zmtp speaks the ZeroMQ message transport protocol, versions 3.0 and
// 3.1 with the NULL mechanism: what libzmq puts on a TCP connection when Salt
// uses its zeromq transport (RFC 23/ZMTP 3.0, RFC 37/ZMTP 3.1).
//
// It owns no socket of its own and starts no goroutine. Bytes go into a
// Decoder, which may be fed any number of them at a time, down to one, and
// returns their meaning; the Append functions produce the bytes of the other
// direction. Client is the blocking convenience over a connection that its
// caller has made.
//
// Vocabulary:
//
//	greeting   the 64 bytes either side sends first
//	frame      one length-prefixed body; a message is one or more frames, all
//	           but the last of which carry the MORE flag
//	command    a frame with the COMMAND flag: READY, ERROR, SUBSCRIBE, CANCEL,
//	           PING, PONG. Commands may stand between messages, never inside.
//	envelope   frames before and including the first empty one (REQ, DEALER);
//	           this package does not interpret it
//
// Promises: no input makes it panic; a limit is checked when a header
// announces a size, before memory is taken for the body; a body that arrives
// slowly takes memory in step with what has arrived, not with what was
// announced; a message that never ends is refused after Limits.MaxParts frames
// or Limits.MaxMessage bytes.
package zmtp
