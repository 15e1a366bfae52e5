// Package share watches a directory that the masters of a cluster share. It checks that the directory answers, and that
// it is the same one on all nodes.
//
// In: the directory, and the tokens that the other nodes report to have written there. Out: a State, and this node's
// token for the others.
//
// Each node keeps one small file with its token in the directory and reads those of the others. The token is random and
// renewed from time to time: otherwise a file system with an old copy of the files, mounted later in place of the
// share, would go unnoticed. If the token that a node reports over the peer port differs from its file here for some
// time, that node has another directory mounted. A node may have no share (Apart): when a cluster stops using its
// share, the nodes leave it one after the other.
//
// Vocabulary:
//
//   - A look is one round of writing and reading. It runs in a goroutine of its own: if the server of the mount is
//     gone, the system calls of a look return when the server is back, and cannot be ended before. There is at most one
//     look at a time, so a hung mount costs one goroutine, and no caller waits for it, not even Close.
//   - The share hangs (Hung) when a look takes longer than Timeout.
//
// Promises: State never waits for the disk; a hung mount is noticed within Every + Timeout, and one that answers again
// as soon as the look that hung has ended.
package share
