// Package recovery brings a cluster back after a loss, and limits what a node does without a majority.
//
// A Recoverer carries out the operators' verbs recover and snapshot: it makes a cluster of one out of a node that is
// left when more than half of the voters are lost, saves everything that a cluster is, and restores it on a node that
// belongs to none. A Former asks the members that a recovery has dropped whether they belong to another cluster of
// the same identity. A Contact notes when this node last had everything that the cluster has decided. An Alone lets a
// node that restarts without a majority serve minions with what it had, and ends that after cluster_alone_limit.
//
// In: the running membership, the files of a membership in state_dir, the peer port. Out: a rewritten consensus log
// and membership, the files contact and former.json, problems for the status, and the end of a membership that was
// alone for too long.
//
// Promises: a recovered cluster keeps its identity, keys and secrets, and has a later generation, by which members
// that were left behind end their membership (package removal). A recovery that fails leaves the node as it was. A
// restore that was interrupted can be repeated. Which of two clusters of one identity remains is left to an operator.
package recovery
