// Package leadership decides which member leads the cluster next, and hands the leadership over.
//
// It owns the choice of a successor, the call by which a member asks the leader to hand over, and the operators'
// verb transfer.
//
// In: the consensus log, which members are alive and which of them drain, and the state of a shared file system.
// Out: transfers of leadership in the consensus log.
//
// Promises: a successor votes, is alive and does not drain; a member with a salt-master is preferred to a witness.
// A node that resigns takes two seconds at most, and a failed hand-over costs an election and nothing else.
package leadership
