// Package slotfs does the file operations of fsync in directories to which others write as well. Every operation goes
// through a descriptor of the directory itself, and none follows a symlink. Therefore a path can never lead out of the
// directory in which it began, nor to another place in it, even if directories are exchanged at the same time. Names
// are bytes, as they are on disk.
package slotfs
