// Package scan makes a tree of what is in a slot's directory.
//
// A file is read only when the disk says that it has changed since the last scan (size, times, inode), or when the last
// scan came so soon after a change that the times could not tell another one (racy). A file that changes while it is
// read is left as the tree knew it, and the scan says that it is unsettled.
//
// Not part of a tree: what the ignore list matches, unless the tree had it already (another list on another node, or a
// new pattern, must not look like a deletion), our own names, devices, pipes and sockets (a problem where the tree has
// something else), files above 2 GiB (a problem), and a directory new to the tree that holds nothing but such things.
// Any directory that cannot be read fails the whole scan: what was not seen must not look as if it were deleted.
package scan
