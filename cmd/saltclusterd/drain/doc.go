// Package drain makes minions leave a node in an order in which nothing is lost, and lets them back.
//
// A Runner carries out the drains of its own node. Load balancers and the other members are informed first, and the
// leadership moves. After the time that they need to notice, the ports for minions stop listening, subscribers are
// disconnected in steps, and request connections are closed between two requests. The node still works for its
// peers: publications of its master are spread, returns arrive, relayed requests are answered. A Cluster decides
// about the drain of any member, follows it, and empties a node before its removal. RunningJobs tracks the jobs
// that a drain may wait for.
//
// In: the consensus log, where a drain that an operator asked for is stored so that it outlives the daemon; the two
// ports for minions; the returns and the job cache of this node. Out: the ports closed and opened again, reports to
// other members, and the verbs drain and undrain.
//
// Promises: one drain of a node runs at a time and ends with its context; a drain can be taken back at any moment;
// the last node that serves minions is drained by force only. A process that stops drains for no longer than its
// options allow.
package drain
