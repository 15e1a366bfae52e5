// Package apply puts a tree on the disk of a slot.
//
// Vocabulary:
//
//   - plan: the operations that make one tree of another, in the order in which they are safe: removal of obstacles
//     of another type, directories, files and symlinks, permissions, and what is removed, last.
//   - area: where one slot's staged, displaced and put aside content is, on the slot's file system, so that a rename is
//     enough to move it. In the state directory where that is possible, else in a hidden directory of the slot.
//   - switch: carrying out a plan. It consists of renames only, two or three for each file; of copies where another
//     file system is mounted inside of the slot.
//
// A switch may be repeated from its first operation at any time, also after it was killed between two system calls:
// each operation recognises by the inodes in the plan what it has done already. A file is exchanged with what it
// replaces, and the replaced file is compared with what was expected: if it was edited in the meantime, the two are
// exchanged back, and the edit is kept. Entries that are replaced or removed are displaced into the area (or put
// aside), never unlinked. An edit in the very instant of an exchange is given back by the next run when this one was
// killed, or put aside when there has been another edit since. Where content is copied it is put aside when this one
// was killed, or it cannot be given back. Nothing that holds an edit is removed before that was put aside. Limit: on
// a file system that knows no exchange, and is mounted inside of a slot, an edit in that very instant is lost.
package apply
