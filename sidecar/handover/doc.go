// Package handover is what an old and a new saltclusterd say to each other while the new one takes over in place: the
// record in which state is written down, and the socket pair on which it travels together with open descriptors.
//
// In: parts that can freeze (edge, upstream, fanout) and write their state with an Encoder. Out: the same parts in
// another process, which read it with a Decoder. The order of the conversation is the daemon's; this package knows
// messages only.
//
// Promises: a descriptor arrives at most once and with close-on-exec set; what does not arrive in time is an error and
// not a hang; no length that was read is believed before as many bytes are there.
//
// Vocabulary:
//
//	state version  of everything that is written with an Encoder; both sides must speak the same
//	parcel         a payload too large for a message: it travels as a memory file
package handover

// StateVersion is the version of the state this build writes and reads. A change of what any part writes increments
// it: nothing is handed to a process that does not know the version.
const StateVersion = 7
