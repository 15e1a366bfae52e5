// Package membership is this node's membership in a cluster: it combines peer port, consensus and gossip (Member), with
// what follows from them on every node, and what a node keeps on disk about it.
//
// It owns the record of the membership, the roster in force, the view of who may take requests (router.View), and the
// level of commands that all members understand. It has no part in serving minions; Config.Complete, Meta and
// RoutesChanged connect it with the packages that do.
//
// In: the directories state_dir and cluster_pki_dir, options, and what consensus has decided. Out: the parts
// themselves, views, the cluster's key pair, the paths of the files that belong to a membership and, for damaged files,
// the text that explains the recovery to an operator.
//
// Promises: a file is written completely or not at all. A node without a record belongs to no cluster, and the record
// is the last file that is written when it becomes a member.
package membership
