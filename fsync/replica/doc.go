// Package replica is what stores have in common that give every master of a cluster the same files: eauth tokens
// (fsync/tokens), data of minions (fsync/datacache) and jobs (fsync/jobs). It opens and closes them, keeps their tables
// on disk, receives from peers and sends to them, and catches up with one peer after an absence. What an item is, where
// its files are, and which of two is kept, is the store's business.
//
// Vocabulary:
//
//   - store: it embeds a Replica, and gives it a Spec: its path and bounds, its table, its codec and its tasks.
//   - item: what is replicated as a whole, and named by a key of type K. A store watches or scans the directory of the
//     local master for items that came, changed or went, and says so to the feed (package feed).
//   - table: what a store remembers of its items beside their files, tombstones among them. After a start it shows
//     what was removed in the meantime. It is written some time after Changed, and by Close.
//   - scanned: the store has compared its table with the directory once. Before, it answers peers that it is starting:
//     what it does not know yet is not lacking.
//   - catching up: Pull asks one peer for what it has and fetches what is lacking, page by page. No position is kept:
//     a table says what is there, so an interrupted Pull resumes with what is still lacking. Until Config.Hold is
//     closed, peers are sent nothing.
//   - anti-entropy: digests, see package feed. The owner's digest has every item, or its sum.
//
// In: requests of peers, of which nothing is trusted. Out: calls of Config.Peers, the table's file, and calls of the
// Spec's functions.
//
// Promises, which package replicatest checks of all three: an item that is new on one member is soon on all that can be
// reached, and on the others when they can be again; a repeated or an older body changes nothing; what was removed does
// not come back from a member that was away, nor by a restart; a body that is malformed, too large or not of a member
// is refused as a whole, and what follows is still taken; a file that a power loss spoilt comes back from the others;
// bodies in memory are bounded; after Close nothing is written.
//
// What differs is left to the stores on purpose: whether a later item replaces an earlier one (data of minions), one
// never changes (tokens, returns) or the better one wins (heads of jobs); how the directory is watched; and the bytes
// of bodies and tables, which members of other versions read.
package replica
