// Package keyset brings the minion keys of several stock salt-masters together in one cluster.
//
// Masters that minions use side by side (Salt's multi-master) share one master.pem, and each has accepted keys of
// its own. A master that becomes a node later brings its keys along. Where the masters differ, a person has to decide.
//
// Vocabulary: a Set is the keys of one master, as Collect found them, in a file that is copied to a member of the
// cluster (Encode, Decode); it holds no secret. A claim is the key and state that one source, the cluster or a set, has
// for a minion id. A Row is an id with all claims. Rules decide what follows from the claims. Where they contradict
// each other (different keys, accepted here and rejected there, deleted in the cluster), the operator decides.
//
// Promises: Merge changes nothing, and leaves every conflict to the operator; a key without a decision (pending) never
// conflicts with a decision about the same key; a key that was not chosen is denied, as a stock master does with a
// second key for an id, and is recognised by that when the same files are merged again; proposals to the cluster carry
// the revision that was read, so that a key that has changed since stays as it is.
package keyset
