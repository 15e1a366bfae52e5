// Package keyset brings the minion keys of several stock salt-masters together in one cluster.
//
// Masters that minions use side by side (Salt's multi-master) have one master.pem and each its own accepted keys. A
// master that becomes a node later must bring them along, and only a person can decide where the masters differ.
//
// Vocabulary: a Set is what one master has, as Collect found it, in a file that is carried to a member of the cluster
// (Encode, Decode); it holds no secret. A claim is what one source, the cluster or a set, has for a minion id. A Row
// is an id with all claims; what the claims lead to is decided by rules, and where they contradict each other
// (another key, accepted here and rejected there, deleted in the cluster) by the operator.
//
// Promises: Merge changes nothing, and leaves every conflict to the operator; a key without a decision (pending)
// never conflicts with a decision about the same key; a key that lost is denied, as a stock master does with a second
// key for an id, and is recognised by that when the same files are merged again; proposals to the cluster carry the
// revision that was read, so that a key that has changed since stays as it is.
package keyset
