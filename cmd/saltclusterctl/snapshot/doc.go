// Package snapshot has the verbs that back up a cluster and bring it back: saltclusterctl snapshot and recover.
//
// In: the admin socket, snapshot files, passphrases. Out: files that only their owner can read, and a restored cluster.
//
// Promises: nothing is overwritten without consent; a passphrase is never an argument.
package snapshot
