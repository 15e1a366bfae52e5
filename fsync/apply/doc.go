// Package apply installs a tree in the directory of a slot.
//
// Vocabulary:
//
//   - plan: the operations that turn one tree into another, in a safe order: obstacles of another type are removed,
//     then come directories, files and symlinks, permissions and, last, removals.
//   - area: holds one slot's staged, displaced and put aside content on the slot's file system, so that a rename is
//     enough to move it. It is in the state directory if possible, otherwise in a hidden directory of the slot.
//   - switch: carrying out a plan. It consists of renames, two or three for each file, or of copies if another file
//     system is mounted inside the slot.
//
// A switch may be repeated from its first operation at any time, even after it was killed between two system calls: by
// the inodes in the plan, each operation recognises what it has done already. Entries that are replaced or removed are
// displaced into the area (or put aside), never unlinked.
//
// No edit by others is lost. A file is exchanged with the one it replaces, and that one is compared with what was
// expected. If it was edited in the meantime, the two are exchanged back. If the run is killed before that, the next
// one returns the edit to its place, or puts it aside if the place was edited again. Edits of content that is copied
// are put aside in that case, and whenever they cannot be returned. Limit: on a file system without exchange that is
// mounted inside a slot, an edit at the instant of the switch is lost.
package apply
