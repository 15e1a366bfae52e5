// Package ring says which node is responsible for a key (a minion id or a jid).
//
// It uses weighted rendezvous hashing: every node gets a score for the key from xxhash64(key, node id) and its weight,
// and the highest score wins. A node that joins takes its share from all others, a node that leaves gives its keys to
// all others, and no other key moves. No table has to be built or agreed on: equal inputs give equal answers on every
// node.
//
// In: the usable nodes with their weights. Out: an owner, a ranking, the shares. Pure: no state, no clock, no locks.
//
// Vocabulary: the owner of a key is the node that handles it; the ranking lists the nodes that take over, in order; the
// share of a node is the part of the key space it owns; a draining node owns nothing while any other node can.
package ring
