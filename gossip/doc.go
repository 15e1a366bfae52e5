// Package gossip says which nodes are there: memberlist with our peer port as its stream transport and a udp socket of
// the same port number for its packets.
//
// It says which nodes are *there*; only the roster says which nodes *belong* (package peer, the consensus state).
// Gossip packets have no replay protection and a removed node keeps the key until it is rotated, hence three fences,
// all read live from the roster: packets from other addresses than members' are dropped before they are parsed,
// claims about nodes which the roster does not have at that very address are vetoed, and Members and Alive leave such
// nodes out whatever memberlist thinks. Removing a node for good therefore is: roster, Port.Revoke, and a new key for
// the rest.
//
// Vocabulary:
//
//   - Member: a node on the roster with what gossip knows about it: alive, dead (stopped answering), left (gone after
//     draining) or absent (never seen).
//   - Meta: the hints a node spreads about itself, node.Meta.
//   - Keys: AES-256 keys of the packets; the first one encrypts, all of them decrypt. The cluster's UUID is the label
//     in every packet and stream, so two clusters never merge.
//   - Rejoin: nodes on the roster that are not alive are contacted again and again, with a growing pause. That is how
//     the cluster heals after a partition and how a restarted node comes back.
//
// The component owns its goroutines; callbacks given in Config must not block.
package gossip
