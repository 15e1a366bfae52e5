// Package joining makes a node a member of a cluster, and lets members admit others.
//
// A Joiner belongs to a node, with or without a cluster. It founds a cluster with the local master's key, or joins one
// through a member: on an operator's command, or on its own through the configured peers. An Admission belongs to a
// running membership. It answers joining nodes, and proposes one-time tokens and the cluster secret to consensus.
//
// In: the options, the stock master beside the node, the consensus log, and functions of the daemon that restart parts
// of it or report their progress. Out: the files of a membership on disk (package membership), and entries in the log.
//
// Promises:
//   - A refused or failed join changes nothing on either side. The record of the membership is written last.
//   - Of several nodes that found a cluster at the same time and are configured as each other's peers, one succeeds.
//   - A one-time token admits one node. A witness does not get the cluster's private key, and cannot admit anyone.
//   - A master with minions of its own joins only if they trust the cluster's key and the cluster accepts their keys,
//     unless an operator waives that.
package joining
