// Package roots keeps file_roots and pillar_roots of all masters equal. It owns the content of the slots it is
// configured with, its database in the state directory, and an area per slot for what is staged and displaced.
//
// Vocabulary (more in fsync/tree):
//
//   - revision: a tree that consensus has ordered. It has a parent; the newest one that is in force is the head.
//   - live: what is on disk, as the last scan saw it.
//   - base: the revision that was last put on this disk.
//   - local edits: how live differs from base.
//   - switch: the short pass of renames that makes staged content live while requests for files wait at the gate.
//   - displaced: content that a switch replaced or removed; it is kept for rollbacks, up to a bound.
//   - aside: what lost against the cluster in a merge, or what a joiner had of its own; kept until an operator drops
//     it.
//   - held: a revision that removes too much of a slot; it is in the log, but not in force until it is confirmed.
//   - unavailable: a slot that is not configured here, or whose directory is missing, unreadable, or has been replaced
//     by an empty one or another file system. It never counts as a deletion; its part of the tree is carried along
//     unchanged.
//
// The engine is a Store:
//
//	New(Config) (*Store, error); Open(ctx) error; Close() error
//	Handler() http.Handler                             // POST Path: what peers fetch
//	Status() Status; CaughtUp() bool                   // the head is on this disk
//	Sync(ctx, SyncOptions) (SyncResult, error)         // scan now, propose what differs; Accept: also what is left alone
//	Diff(ctx, node.ID) ([]Change, error)               // from live here to live there
//	Rollback(ctx, number uint64) (Revision, error)
//	Refill(ctx, dir string) error                      // a slot that was replaced gets what the cluster has
//	Conflicts(most int) []Conflict                     // the oldest
//	Resolve(ctx, id string) error                      // what was put aside becomes live again, a local edit
//	Drop(ctx, id string) error                         // what was put aside is removed
//
// What the engine does, whenever something may have changed: when the head is not the base, scan, merge local edits
// with the head, fetch what is missing, stage it, switch; then the head is the base. When live differs from the base
// that is the head, propose it as a new revision. A merge therefore is local edits that are applied to a newer head and
// proposed again.
//
// In: revisions and news of them (Log), content by hash (Peers, Handler), the disk. Out: proposals (Log), AfterSwitch.
//
// Promises: no request for a file sees half of a revision (Gate); nothing is written outside of a slot, and symlinks
// are never followed; content is verified before it becomes live, and again what it replaces: a file that was edited
// since the last scan is kept, and becomes the next proposal; a switch that was interrupted is completed by the next
// Open before anything else, and what of it a power failure has kept from the disk is fetched again; nothing that was
// only on this disk is removed, it is displaced or put aside; memory is bounded by the number of files, not by their
// size.
//
// Limits: content that an operator overwrites in place is gone from that node; the others have it. Owners, times,
// extended attributes, hard links, devices, sockets and pipes are not carried.
// DESIGN.md has the invariants that this package and others keep together, the crash points, bounds and tests.
package roots
