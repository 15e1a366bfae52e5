// Package epochs holds the cluster's AES key as minions see it: the current epoch, and for a while after a scheduled
// rotation the one before.
//
// Consensus decides when an epoch begins (consensus/state, epoch.rotate); this package turns its key into what the hot
// paths need, once: a Crypticle that seals publications, and the X9.31 signature that every accepted _auth reply
// carries (a 2048-bit private operation that would otherwise be paid per sign-in).
//
// Rotation without a herd. Only publications are sealed with this key and a minion that cannot open one signs in at
// once. After a scheduled rotation connections move to the new epoch one after the other (edge.PubEdge.Rotate), so
// for the length of a window both epochs seal. A sign-in inside the window usually means that what the minion holds
// failed: it gets the new epoch, and the old one if the new was what it got last, because then its connection has not
// moved yet. The peers learn which epoch an id got last (Announce), because the next sign-in may reach another node.
//
// After a revocation (a key was deleted or rejected) nothing is ever sealed under the old epoch again: the removed
// minion can read nothing further, and the window only spreads the sign-ins of the others.
package epochs
