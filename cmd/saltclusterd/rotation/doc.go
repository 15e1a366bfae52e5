// Package rotation replaces the secrets of a cluster while it runs: the AES key of publications with the seed of
// session keys, the gossip key, the secret that nodes join with, and the certificates of nodes. The cluster's identity
// is package identity.
//
// Secrets has the members agree on a new AES key, seed, gossip key or join secret, for an operator or as a duty of the
// leader. Epochs puts the agreed AES key and seed into effect on a node that serves minions, and moves its subscribers
// to them. Certificates renews the certificate of this node and enters the new one in the roster. Verbs answers
// operators.
//
// In: the log of consensus, what the membership offers to every capability (Membership), and the engines that seal,
// publish and sign in. Out: proposals, calls to other members, outcomes for operators.
//
// Promises: a rotation that was interrupted anywhere is completed by a later leader or process. After an accepted
// minion key was deleted or rejected, no publication is encrypted with an AES key that its owner has, unless the
// cluster cannot decide. A removed member gets no later gossip key or seed. No secret is logged.
package rotation
