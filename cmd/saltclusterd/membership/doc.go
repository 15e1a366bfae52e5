// Package membership holds what a node keeps on disk about its membership in a cluster.
//
// In: the directory state_dir. Out: the record of the membership, the paths of the files that belong to one, and for damaged files the text
// that tells an operator how to recover.
//
// Promises: a record is written as a whole or not at all. A node without a record belongs to no cluster.
package membership
