// Package feed sends what is new on this node to the other members of the cluster. It has one sender per member, which
// waits, retries and compares from time to time. Its owner defines what is sent, and how.
//
// In: changes of members, and names of what is new. Out: calls of the owner's Sender, one at a time for each member.
//
// Vocabulary:
//
//   - name: identifies an item that a member should have: the fingerprint of a token, the id of a minion, the id of a
//     job. The item is read when it is sent, so that a queue is small and never out of date.
//   - line: the queue for one member: the names that are pending for it.
//   - turn: one call of a Sender. Turns are repeated until the line is empty; names that a failed turn did not deliver
//     stay pending.
//   - digest: all names this node has, sent to a member. The first one, and one requested by Tell, make the member send
//     its own as well. Some owners' digests supply the member with what it lacks (Config.Covers); those of others show
//     what this node lacks, and the member's answer does the reverse.
//   - off: a member that has reported it needs none of the items. It gets digests only, because that may change.
//   - lacking: announced by a member but not here yet (Progress).
//
// Promises: adding never blocks; a line is bounded, and a digest finds names beyond the bound; a member that fails is
// tried again after a pause that doubles; nothing is sent before the owner is ready, nor after Close has returned.
// Nothing is kept on disk: a new line begins with a digest.
package feed
