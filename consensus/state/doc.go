// Package state holds the facts that the nodes of a cluster agree on, and every permitted change to them: the members,
// the minion keys (pending, accepted, rejected, denied, deleted), the AES epochs, the session seed, the gossip keys,
// and the revisions of the file and pillar trees (their names, not their content).
//
// In: commands, in log order. Out: the same State, the same Results and the same snapshot bytes on every node. The
// package has no clock, disk, goroutine or randomness. Times are part of the commands and are never compared with
// "now".
//
// Vocabulary:
//
//   - Command: one change ("key.set", "member.add", ...). Its encoding is a JSON record
//     {"v":1,"t":"key.set","d":{...}}; "i":true marks a type that an older node may skip when it does not know it.
//   - Request: the commands of one Propose call under one id. A request that arrives twice is applied once; the
//     recorded results are returned again.
//   - Entry: one raft log entry, holding one or more requests (group commit).
//   - Rev: the revision of the state. It grows by one with every effective change and names that change; it never
//     decreases, not even across snapshots. The raft index cannot serve for this, because one entry holds many changes
//     and a rebuilt log may start again.
//   - Tombstone: what remains of a deleted minion key, so that a proposal made from older knowledge cannot bring the
//     key back. Only the command tombstones.prune removes tombstones.
//   - Roots revision: one agreed state of all file_roots and pillar_roots, named by the hash of its tree. One is in
//     force (the head); each follows a parent; those that wait for an operator are on hold. They have numbers of their
//     own, which operators type.
//   - Join token: a permission to join once, known here by the public half of its key. Cluster secret number N: a
//     replacement of the configured one.
//   - Level: a number for the commands that a version understands. The agreed level is one that all members understand.
//   - View: an immutable picture of the state at one revision. Taking one is a pointer load; reading it needs no locks.
//
// Promises: Apply never panics on any input and never leaves half a command behind; every field is validated and
// bounded; secrets are never printed (see Secret). A command that a node does not understand and may not skip is
// ErrUnsupported, and the state remains as it was.
package state
