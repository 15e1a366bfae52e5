// Package snapshot has the verbs for the worst day: saltclusterctl snapshot and recover.
//
// In: the admin socket, files of snapshots, passphrases. Out: files that only their owner can read, and a restored
// cluster.
//
// Promises: nothing is overwritten without consent; a passphrase is never an argument.
package snapshot
