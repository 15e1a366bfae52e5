// Package tree describes the content of file_roots and pillar_roots as a Merkle tree. It is pure: no disk, no clock.
//
// Vocabulary:
//
//   - slot: one directory of one environment, such as file:base:0 for the first of file_roots' base.
//   - entry: what a directory has under a name: a file (permission bits, chunks), a directory or a symlink (its text).
//   - object: the canonical encoding of a directory, or of the root, which lists the slots. Its name is its SHA-256.
//   - tree: a root object and the objects it leads to. Equal content has the same root on every node, because the tree
//     contains neither times nor owners.
//
// Promises: an object has exactly one encoding, and Decode accepts no other; a decoded name is a single component of a
// path (never empty, "." or "..", without slash and NUL, and not a name that saltclusterd keeps for itself), so that no
// peer can make a node write outside a slot; the memory for decoding is bounded by the length of the input.
//
// Diff returns the differences between two trees without reading equal parts. Merge combines two trees that have a
// common ancestor, path by path.
package tree
