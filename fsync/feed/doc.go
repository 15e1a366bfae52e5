// Package feed keeps the other members of a cluster supplied with what is new on this node. It has one sender per
// member, which waits, retries and compares from time to time; what there is to say, and how, is its owner's business.
//
// In: changes of members, and names of what is new. Out: calls of the owner's Sender, one at a time for each member.
//
// Vocabulary:
//
//   - name: what the owner calls a thing that a member shall have: a token's print, a minion's id, a job's id. The
//     thing itself is read when its turn comes, so that a queue is small and never out of date.
//   - line: the way to one member, with the names that wait for it.
//   - turn: one call of a Sender. Turns are repeated until nothing waits; names that a failed turn did not bring stay
//     pending.
//   - digest: all names this node has, sent to a member. The first one, and one requested by Tell, make the member
//     send its own as well. Some owners' digests bring the member what it lacks (Config.Covers), those of others show
//     what this node lacks, and the member's answer does the reverse.
//   - off: a member that says it has no use for any of it. It gets digests only, because it may change its mind.
//   - lacking: announced by a member but not here yet (Progress).
//
// Promises: adding never blocks; the names that wait for a member are bounded, and beyond the bound a digest finds the
// rest; a member that fails is tried again after a pause that doubles; nothing is sent before the owner is ready, nor
// after Close has returned. Nothing is remembered on disk: a new line begins with a digest.
package feed
