// Package membership is this node's membership in a cluster: peer port, consensus and gossip put together (Member),
// what follows from them for every node, and what a node keeps on disk about it.
//
// It owns the record of the membership, the roster in force, the view of who may take requests (router.View), and the
// level of commands that all members understand. It knows nothing of what minions see: Config.Complete, Meta and
// RoutesChanged connect it with that.
//
// In: the directories state_dir and cluster_pki_dir, options, and what consensus has decided. Out: the parts
// themselves, views, the cluster's key pair, the paths of the files that belong to a membership, and for damaged
// files the text that explains the recovery to an operator.
//
// Promises: a file is written as a whole or not at all. A node without a record belongs to no cluster, and the record
// is the last file that is written when it becomes a member.
package membership
