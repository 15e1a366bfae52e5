// Package membership holds what a node keeps on disk about its membership in a cluster.
//
// In: the directories state_dir and cluster_pki_dir, and what consensus has decided. Out: the record of the membership,
// the cluster's key pair, the paths of the files that belong to a membership, and for damaged files the text that tells
// an operator how to recover.
//
// Promises: a file is written as a whole or not at all. A node without a record belongs to no cluster, and the record
// is the last file that is written when it becomes a member.
package membership
