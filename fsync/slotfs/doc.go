// Package slotfs is what fsync does to directories that others write to as well: every operation goes through a
// descriptor of the very directory, and none follows a symlink. A path can therefore never lead out of the directory
// it began in, nor to another place in it, even if directories are exchanged at the same time. Names are bytes as
// they are on the disk.
package slotfs
