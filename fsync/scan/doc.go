// Package scan builds a tree from the content of a slot's directory.
//
// A file is read only if the disk says that it has changed since the last scan (size, times, inode), or if the last
// scan came so soon after a change that the times could not show another one (racy). A file that changes while it is
// read stays in the tree as it was, and the scan reports that it is unsettled.
//
// Not part of a tree:
//
//   - what the ignore list matches, unless the tree had it already: another list on another node, or a new pattern,
//     must not look like a deletion;
//   - names that saltclusterd keeps for itself;
//   - devices, pipes and sockets, which are a problem where the tree has something else;
//   - files above 2 GiB, which are a problem;
//   - a directory that is new to the tree and holds nothing but such things.
//
// A directory that cannot be read fails the whole scan: content that was not seen must not look deleted.
package scan
