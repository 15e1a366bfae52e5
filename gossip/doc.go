// Package gossip finds out which nodes are alive: memberlist with our peer port as its stream transport and a udp
// socket of the same port number for its packets.
//
// Gossip decides which nodes are *alive*; only the roster decides which nodes *belong* to the cluster (package peer,
// the consensus state). Gossip packets have no replay protection, and a removed node keeps the key until it is rotated.
// Hence three checks, all against the current roster: packets from addresses other than members' are dropped before
// they are parsed, claims about nodes that the roster does not have at exactly that address are vetoed, and Members and
// Alive omit such nodes even if memberlist has them. To remove a node for good therefore takes three steps: the roster,
// Port.Revoke, and a new key for the others.
//
// Vocabulary:
//
//   - Member: a node on the roster with its state in gossip: alive, dead (stopped answering), left (gone after
//     draining) or absent (never seen).
//   - Meta: the hints a node spreads about itself, node.Meta.
//   - Keys: AES-256 keys of the packets; the first one encrypts, all of them decrypt. The cluster's UUID is the label
//     in every packet and stream, so two clusters never merge.
//   - Rejoin: nodes on the roster that are not alive are contacted repeatedly, with a growing pause. That is how the
//     cluster recovers from a partition and how a restarted node returns.
//
// The component owns its goroutines; callbacks given in Config must not block.
package gossip
