// Package history records what was done to a cluster and what was seen of it, and judges the record afterwards: it
// looks for what a cluster that loses nothing could not have shown. It is pure; programs that disturb a cluster fill
// it.
//
// # Vocabulary
//
// A Publication is one job with a number of its own, published by one node. A Run is a minion executing it, written
// down by the minion. A Return is what that minion sent about it, and Acked the moment when it was told that its return
// is safe. A Cached is a return as Salt's own code reads it from a job cache at the end. A Presence is the time in
// which a minion was known to be subscribed, and to which node. A KeyOp is an operator's decision about a minion's key,
// a Probe an attempt to use a key. A Sent event of a minion and the Heard events on masters' buses belong
// together by their tag. A Fault lasts from its injection to the moment when the nodes it touched were seen whole
// again. A View is what one node says at the very end.
//
// # Promises
//
// Check never blames a cluster for what it may do: an outcome that was not seen (a command that timed out, was killed)
// counts as both, and what a fault touched is excused from being delivered, though never from being delivered twice or
// from being lost after it was acknowledged.
package history
