// Package keyset brings the minion keys of several stock salt-masters together in one cluster.
//
// Masters that minions use side by side (Salt's multi-master) have one master.pem and each its own accepted keys.
// Whoever becomes a node later must bring them along, and what the masters say differently only a person can decide.
//
// Vocabulary: a Set is what one master has, as Collect found it, in a file that is carried to a member of the cluster
// (Encode, Decode); it holds no secret. A claim is what one source, the cluster or a set, says of a minion id. A Row is
// an id with all claims; what the claims lead to is decided by rules, and where they contradict each other (another
// key, accepted here and rejected there, deleted in the cluster) by the operator.
//
// Promises: Merge changes nothing, and leaves every conflict to the operator; a key without a decision (pending) never
// stands against a decision about the same key; a key that lost is denied, as by a stock master that hears a second one
// for an id, and is recognised by that when the same files are merged again; what is to be put into the cluster carries
// the revision that was looked at, so that a key that was changed meanwhile stays as it is.
package keyset
