// Package minionkeys gives the packages that serve minions the cluster's decisions about minion keys.
//
// Keys answers which minion is accepted with which key, derives session keys, and proposes keys that the local master
// accepted at a sign-in to the cluster. It reports how far the local master's files are behind the decisions.
//
// In: the consensus log, the seeds of session keys, the key directory. Out: the interfaces of packages sidecar, signin,
// datacache, jobcache and catchup that are about keys.
//
// Promises: all nodes derive the same session keys. While this node serves without a majority, nothing waits for key
// files, which get no new decisions then. Until this node has caught up, a minion counts as known unless its key was
// deleted: a node that lacks decisions removes nothing.
package minionkeys
