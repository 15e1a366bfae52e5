// Package durable writes files that are whole whatever happens, and still there after a power loss.
//
// It owns the order of the steps: written beside under another name, with its rights and its owner before anybody can
// open it under its own, synced, renamed, and the directory synced, without which a name may be gone again after a
// power loss. It also knows which errors are those of a disk (IsDiskError). In: a path and its content. Out: the file,
// or an error and what was there before. A leaf: every package may import it.
//
// It is not for files below directories that others write to; code that writes there opens an os.Root first
// (sidecar/localmaster, fsync/keydir).
package durable
