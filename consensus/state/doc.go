// Package state holds the facts a cluster of saltclusterd nodes agrees on, and
// every legal change to them: who belongs, the minion keys (pending, accepted,
// rejected, denied, deleted), the AES epochs, the session seed, the gossip
// keys, and the revisions of the file and pillar trees (their names: content is
// not in here).
//
// It owns no clock, no disk, no goroutine and no randomness. Commands go in,
// in log order, and the same commands give the same State, the same Results
// and the same snapshot bytes on every node. Times are carried inside the
// commands and are never compared with "now".
//
// Vocabulary:
//
//   - Command: one change ("key.set", "member.add", ...). Its encoding is a
//     JSON record {"v":1,"t":"key.set","d":{...}}; "i":true marks a type that
//     an older node may skip when it does not know it.
//   - Request: the commands of one Propose call under one id. A request that
//     arrives twice is applied once; the recorded results are returned again.
//   - Entry: one raft log entry, holding one or more requests (group commit).
//   - Rev: the revision of the state. It grows by one with every effective
//     change and names that change; it never goes back, also not across
//     snapshots. The raft index is not used for this because one entry holds
//     many changes and a rebuilt log may start anew.
//   - Tombstone: what remains of a deleted minion key, so that a proposal made
//     from older knowledge cannot bring the key back. Tombstones go away by the
//     explicit command tombstones.prune only.
//   - Roots revision: one agreed state of all file_roots and pillar_roots,
//     named by the hash of its tree. One is in force (the head); each follows a
//     parent; those that wait for an operator are on hold. They are numbered for
//     themselves, as operators type the numbers.
//   - Join token: a permission to join once, known here by the public half of
//     its key. Cluster secret number N: what replaced the configured one.
//   - Level: a number for what a version understands. The agreed one is what all
//     members do.
//   - View: an immutable picture of the state at one revision. Taking one is a
//     pointer load; reading it needs no locks.
//
// Promises: Apply never panics on any input and never leaves half a command
// behind; every field is validated and bounded; secrets do not print (see
// Secret). What a node cannot understand and may not skip is ErrUnsupported,
// and the state stays as it was.
package state
