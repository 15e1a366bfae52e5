// Package handover is the protocol between an old and a new saltclusterd while the new one takes over in place: the
// encoding in which state is written, and the socket pair on which it travels together with open descriptors.
//
// In: parts that can freeze (edge, upstream, fanout) and write their state with an Encoder. Out: the same parts in
// another process, which read it with a Decoder. The daemon decides the order of messages; this package only transfers
// them.
//
// Promises: a descriptor arrives at most once and with close-on-exec set; data that do not arrive in time are an error,
// not a hang; no memory is allocated for a length before as many bytes are there.
//
// Vocabulary:
//
//	state version  of everything that is written with an Encoder; both sides must use the same
//	parcel         a payload too large for a message: it travels as a memory file
package handover

// StateVersion is the version of the state this build writes and reads. A change of what any part writes increments
// it: nothing is handed to a process that does not know the version.
const StateVersion = 7
