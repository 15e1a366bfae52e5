// Package identity changes the identity of a cluster while it runs: the key pair that every salt-master of the
// cluster has as its own, and that minions have pinned.
//
// A change is agreed on in consensus (state.IdentityChange), and each node does what follows from it, in steps that
// can all be repeated. No node leads it, so it continues when any node stops. As long as it is under way, every node
// has both keys and answers a minion's sign-in under the one that the minion has pinned. After the switch the nodes
// take the new key one after the other, in the order of their names. Each replaces its key files, has a new process of
// saltclusterd take over, which reads them, and restarts the salt-master.
//
// In: the log of consensus, the key in force on this node, the keys that minions turn out to have pinned when they sign
// in (Change.RecordPin), the local salt-master (Master, MasterKeys). Out: the second identity of sign-ins, key files, a
// takeover, a restart of the salt-master, the steps of "saltclusterctl rotate identity" (Change.Rotate) and what it
// reports.
//
// Promises: a private key leaves a node only sealed for the other key of the change. A node that missed a change does
// not take the key of another one; it reports that it has to join again. A minion is answered under the key that it has
// pinned until an operator finishes the change.
package identity
