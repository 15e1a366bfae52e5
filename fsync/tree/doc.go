// Package tree describes the content of file_roots and pillar_roots as a Merkle tree. It is pure: no disk, no clock.
//
// Vocabulary:
//
//   - slot: one directory of one environment, file:base:0 for the first of file_roots' base.
//   - entry: what a directory has under a name: a file (permission bits, chunks), a directory or a symlink (its text).
//   - object: the canonical encoding of a directory, or of the root, which lists the slots. Its name is its SHA-256.
//   - tree: a root object and the objects it leads to; equal content has the equal root on every node, since neither
//     times nor owners are in it.
//
// Promises: an object has exactly one encoding, and Decode accepts no other; a decoded name is a single component of a
// path (never empty, "." or "..", without slash and NUL, not a name that saltclusterd keeps for itself), so that no
// peer can make a node write outside of a slot; memory for decoding is bounded by the length of what is decoded.
//
// Diff returns the differences of two trees without reading equal parts. Merge combines two trees that were made from
// a common one, path by path.
package tree
