// Package recovery brings a cluster back after a loss, and limits what a node does without a majority.
//
// A Recoverer carries out the verbs recover and snapshot: when more than half of the voters are lost, it turns a
// remaining node into a cluster of one; it saves the whole state of a cluster, and restores it on a node that belongs
// to none. A Former asks the members that a recovery has dropped whether they belong to another cluster of the same
// identity. A Contact records when this node last had everything that the cluster has decided. An Alone lets a node
// that restarts without a majority serve minions with the data it has, until cluster_alone_limit ends.
//
// In: the running membership, the files of a membership in state_dir, the peer port. Out: a rewritten consensus log and
// membership, the files contact and former.json, problems for the status, and the end of a membership that was alone
// for too long.
//
// Promises: a recovered cluster keeps its identity, keys and secrets, and has a later generation, by which members that
// were left behind end their membership (package removal). A failed recovery leaves the node as it was. An interrupted
// restore can be repeated. If there are two clusters of one identity, an operator decides which one remains.
package recovery
