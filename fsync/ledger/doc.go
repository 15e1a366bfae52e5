// Package ledger compares what several nodes hold. It is pure: reading a disk and asking nodes is left to its callers.
//
// Vocabulary:
//
//   - section: one kind of things that all nodes should hold, such as keys or mines.
//   - ledger: what one node holds of a section: items by name, each with a short text on which the nodes should agree,
//     usually a hash.
//   - needed: an item that a node must have. Rules and ledgers name the items that it need not have, because enough
//     other nodes keep them, or because they are older than what is kept. A copy that is not needed is spare.
//   - difference: an item that some of the nodes that need it lack, or have with another text.
//
// An item that is still in transit between nodes is not a difference: Settled returns what two scans had in common.
//
// In: ledgers of peers, which are not trusted: Decode bounds items and texts.
package ledger
