// Package drain moves minions from a node to the others without losing anything, and lets them come back.
//
// A Runner carries out the drains of its own node. Load balancers and the other members are informed first, and the
// leadership moves. After the time that they need to react, the ports for minions stop listening, subscribers are
// disconnected in steps, and request connections are closed between two requests. The node still works for its peers:
// it spreads publications of its master, takes returns and answers relayed requests. A Cluster decides about the drain
// of any member, follows it, and empties a node before its removal. RunningJobs tracks the jobs that a drain may wait
// for.
//
// In: the consensus log, where a drain that an operator asked for is stored so that it outlives the daemon; the two
// ports for minions; the returns and the job cache of this node. Out: the ports closed and opened again, reports to
// other members, and the verbs drain and undrain.
//
// Promises: a node runs one drain at a time, which ends with its context; a drain can be cancelled at any moment; the
// last node that serves minions is drained only with force. A process that stops drains for no longer than its options
// allow.
package drain
