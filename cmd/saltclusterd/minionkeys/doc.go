// Package minionkeys shows the minion keys that the cluster has decided about to the packages that serve minions.
//
// Keys answers who is accepted with which key, derives session keys, and has a sign-in that the local master accepted
// decided by the cluster. It knows how far the files of the local master are behind the decisions.
//
// In: the consensus log, the seeds of session keys, the key directory. Out: the interfaces of packages sidecar, signin,
// datacache, jobcache and catchup that are about keys.
//
// Promises: all nodes derive the same session keys. While this node serves without a majority nothing waits for files
// that cannot come. A minion counts as known until this node has caught up, unless its key was deleted: a node that
// lacks decisions removes nothing.
package minionkeys
