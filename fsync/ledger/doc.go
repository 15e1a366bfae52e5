// Package ledger compares what several nodes hold. It is pure: what is on a disk, and how nodes are asked, is the
// business of others.
//
// Vocabulary:
//
//   - section: one sort of things that all nodes should hold, such as keys or mines.
//   - ledger: what one node holds of a section: items by name, each with a short text in which the nodes should agree,
//     a hash mostly.
//   - needed: an item that a node shall have. Rules and ledgers tell of those that it need not: because of how many
//     nodes keep it, or for how long. A copy that is not needed is spare.
//   - difference: an item that not all nodes have that need it, or not with the same text.
//
// An item that is still on its way between nodes is not a difference: Settled returns what two scans had in common.
//
// In come ledgers of peers, which may be anything: Decode bounds items and texts.
package ledger
