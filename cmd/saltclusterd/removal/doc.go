// Package removal takes a member out of the cluster, and notices when this node was taken out.
//
// A Remover carries out the operators' verb remove for any member, dead or alive. It refuses a removal that would cost
// the cluster its majority, its last node with a salt-master, or returns that no other node has. It drains the member,
// moves the leadership away from it and takes it off the roster. A Watch runs on every member. It learns from the
// consensus log, or by asking other members, that its own node was removed, and answers the same question of others.
//
// In: the consensus log, the saved roster, which members gossip sees, and the drains of members. Out: the removal in
// the consensus log; the reason why the membership of this node ends; the error that operators get when no majority
// can be reached.
//
// Promises: a member is removed only by the decision of a majority, and one at a time. A node that is merely behind
// cannot make another one end its membership: what counts is a roster that is newer than the one that this node has, or
// a later generation of the cluster.
package removal
