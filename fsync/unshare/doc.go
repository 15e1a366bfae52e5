// Package unshare moves what a salt-master has on a file system that it shares with others to its own disk.
//
// It owns nothing for long: a Plan lists what is to be moved and by which change of the master's configuration, Copy
// makes the copies, Exchange replaces a link by a copy, and State is what has to be remembered during that time. When
// that is done, and what the cluster has to say about it, is the matter of cmd/saltclusterd/migration.
//
// Vocabulary:
//
//   - tree: a directory on the share, with the place of its copy.
//   - a tree is named by an option of the master (pki_dir, file_roots, pillar_roots), which a drop-in changes; or by a
//     link in cachedir (jobs, minions), in whose place the copy comes.
//   - pass: one round of copying. Passes are repeated: the first takes long while all keeps running, the last one
//     is short.
//   - a file is settled when copy and original have one hash.
//
// In: what the master's configuration says, and which paths are on the share. Out: a Plan; files below Tree.To with
// owner, mode and time of the originals.
//
// Promises: the share is only read; a file appears whole or not at all; a pass that was cut off is gone on with by the
// next one; links that lead from one tree to another lead to the copy, and others that lead to the share are named;
// nothing outside of Tree.To is written. A pass removes from the copy what the original no longer has, until the copy
// is in use.
//
// Limits: hard links become files of their own; extended attributes, sockets, pipes and devices are not copied.
package unshare
