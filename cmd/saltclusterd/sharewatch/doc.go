// Package sharewatch watches the file system that the masters of a cluster share, on one of its nodes.
//
// It owns the watch over that file system (package fsync/share), the list of files on it that must not be there, the
// health check "share", and the answer to members that ask what this node has written there. A node with a file system
// of its own asks the others, to verify that it is not shared.
//
// In: the directories of the master beside this node, the other members that have a master, and a client to call them.
// Out: whether the share hangs, a health.Result, the route of the call between members.
//
// Promises: Check, Hung and Close never wait for the file system; OnShare and FindMisplaced wait some seconds for each
// path. ClosePart abandons a part that waits for a share that hangs, because nothing can end that wait.
package sharewatch
