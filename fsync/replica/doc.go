// Package replica has what the stores share that replicate files to every master of a cluster: eauth tokens
// (fsync/tokens), data of minions (fsync/datacache) and jobs (fsync/jobs). It opens and closes the stores, keeps their
// tables on disk, receives from peers and sends to them, and catches up with one peer after an absence. Each store
// decides what an item is, where its files are, and which of two versions is kept.
//
// Vocabulary:
//
//   - store: embeds a Replica and gives it a Spec: its path and bounds, its table, its codec and its tasks.
//   - item: what is replicated as a unit, named by a key of type K. A store watches or scans the directory of the local
//     master for items that were added, changed or removed, and reports them to the feed (package feed).
//   - table: what a store remembers of its items besides their files, including tombstones. After a start it shows what
//     was removed in the meantime. It is written some time after Changed, and by Close.
//   - scanned: the store has compared its table with the directory once. Until then it tells peers that it is starting,
//     because it cannot say yet what it lacks.
//   - catching up: Pull asks one peer what it has and fetches what is lacking, page by page. No position is kept: the
//     table says what is there, so an interrupted Pull resumes with what is still lacking. Until Config.Hold is closed,
//     nothing is sent to peers.
//   - anti-entropy: digests, see package feed. The owner's digest has every item, or its sum.
//
// In: requests of peers, which are not trusted. Out: calls of Config.Peers, the table's file, and calls of the Spec's
// functions.
//
// Promises, which package replicatest checks for all three stores: an item that is new on one member soon reaches all
// reachable members, and the others when they are reachable again; a repeated or older body changes nothing; a removed
// item does not come back from a member that was away, nor after a restart; a body that is malformed, too large or not
// from a member is refused as a whole, and later bodies are still accepted; a file that a power failure spoilt comes
// back from the others; the memory for bodies is bounded; nothing is written after Close.
//
// The stores differ on purpose in three things: whether a later item replaces an earlier one (data of minions), items
// never change (tokens, returns), or the better one wins (heads of jobs); how the directory is watched; and the
// encoding of bodies and tables, which members of other versions read.
package replica
