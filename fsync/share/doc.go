// Package share watches a directory that the masters of a cluster share: that it answers, and that it is one and the
// same for all of them.
//
// In: the directory, and what the other nodes say they have written there. Out: a State, and a token for the others.
//
// Each node keeps one small file in the directory with its token, random and renewed from time to time (or a file
// system that is mounted in the place of the share later, with an old copy of the files, would not show), and reads
// those of the others. If the token that a node reports over the peer port differs from its file here for some time,
// that node has another directory mounted. A node may share nothing (Apart): while a cluster leaves its share, one
// node does so after the other.
//
// Vocabulary:
//
//   - A look is one round of writing and reading. It runs in a goroutine of its own: when the server of the mount is
//     gone, the system calls of a look return when it is back, and nothing can end them before. There is never more
//     than one look, so a hung mount costs one goroutine, and no caller waits for it, not even Close.
//   - The share hangs (Hung) when a look takes longer than Timeout.
//
// Promises: State never waits for the disk; a mount that hangs is noticed within Every + Timeout, one that answers
// again as soon as the look that hung has ended.
package share
