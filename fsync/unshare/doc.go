// Package unshare moves a salt-master's data from a file system that it shares with others to its own disk.
//
// It keeps no state: a Plan lists what is to be moved and how the master's configuration changes, Copy makes the
// copies, Exchange replaces a link by a copy, and State is what the caller has to remember meanwhile. When this is
// done, and how the cluster is involved, is decided by cmd/saltclusterd/migration.
//
// Vocabulary:
//
//   - tree: a directory on the share, with the path of its copy. A tree belongs to an option of the master (pki_dir,
//     file_roots, pillar_roots), which a drop-in changes, or to a link in cachedir (jobs, minions), which the copy
//     replaces.
//   - pass: one round of copying. Passes are repeated: the first one takes long, while everything keeps running; the
//     last one is short.
//   - settled: a file whose copy has the same hash as the original.
//
// In: the master's configuration, and which paths are on the share. Out: a Plan; files below Tree.To with owner, mode
// and time of the originals.
//
// Promises: the share is only read; a file appears whole or not at all; the next pass continues one that was cut off;
// links from one tree to another lead to the copy, and other links to the share are reported; nothing outside Tree.To
// is written. Until the copy is in use, a pass removes from it what the original no longer has.
//
// Limits: hard links become files of their own; extended attributes, sockets, pipes and devices are not copied.
package unshare
