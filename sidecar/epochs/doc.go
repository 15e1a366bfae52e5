// Package epochs holds the cluster's AES key as minions see it: the current epoch, and for a while after a scheduled
// rotation the previous one.
//
// Consensus decides when an epoch begins (consensus/state, epoch.rotate). This package derives from its key, once, what
// the hot paths need: a Crypticle that seals publications, and the X9.31 signature that every accepted _auth reply
// carries (a 2048-bit private operation that every sign-in would cost otherwise).
//
// A rotation does not make all minions sign in at once. Only publications are sealed with this key, and a minion that
// cannot open one signs in immediately. After a scheduled rotation, connections therefore move to the new epoch one
// after the other (edge.PubEdge.Rotate), and both epochs are in use for the length of a window. A sign-in inside the
// window usually means that the key the minion holds failed: it gets the new epoch. If the new epoch was the last one
// it got, it gets the old one, because its connection has not moved yet. The peers are told which epoch an id got last
// (Announce), because the next sign-in may reach another node.
//
// After a revocation (a key was deleted or rejected) nothing is sealed under the old epoch any more: the removed minion
// can read nothing further, and the window only spreads the sign-ins of the others.
package epochs
