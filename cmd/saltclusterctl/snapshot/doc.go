// Package snapshot has the verbs that back up and restore a cluster: saltclusterctl snapshot and recover.
//
// In: the admin socket, snapshot files, passphrases. Out: files that only their owner can read, and a restored cluster.
//
// Promises: nothing is overwritten without consent; a passphrase is never an argument.
package snapshot
