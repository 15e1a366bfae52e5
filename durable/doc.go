// Package durable writes files atomically: after a crash or a power loss a file has its old or its new content.
//
// It owns the order of the steps: a file is written under a temporary name in the same directory, gets its mode and its
// owner, is synced and renamed; then the directory is synced, without which a power loss may undo the rename.
// IsDiskError recognises errors of a disk. In: a path and its content. Out: the file, or an error and the former file.
// A leaf: every package may import it.
//
// It is not for files below directories that others write to; code that writes there opens an os.Root first
// (sidecar/localmaster, fsync/keydir).
package durable
