// Package roots keeps file_roots and pillar_roots the same on all masters. It owns the content of the slots it is
// configured with, its database in the state directory, and an area per slot for staged and displaced content.
//
// Vocabulary (more in fsync/tree):
//
//   - revision: a tree that consensus has ordered. It has a parent; the newest one that is in force is the head.
//   - live: the content on disk, as of the last scan.
//   - base: the revision that was last installed on this disk.
//   - local edits: the differences between live and base.
//   - switch: the short pass of renames that makes staged content live, while requests for files wait at the gate.
//   - displaced: content that a switch replaced or removed. It is kept for rollbacks, up to a limit.
//   - aside: content that lost against the cluster's in a merge, or that a joining node brought with it. It is kept
//     until an operator drops it.
//   - held: a revision that removes too much of a slot. It is in the log, but not in force until it is confirmed.
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
//	Refill(ctx, dir string) error                      // a slot that was replaced gets the cluster's content
//	Conflicts(most int) []Conflict                     // the oldest
//	Resolve(ctx, id string) error                      // makes content that was put aside live again, as a local edit
//	Drop(ctx, id string) error                         // removes content that was put aside
//
// Whenever something may have changed, the engine does this: if the head is not the base, it scans, merges local edits
// with the head, fetches what is missing, stages it, and switches; then the head is the base. If live differs from the
// base and the base is the head, it proposes live as a new revision. So a merge applies local edits to a newer head and
// proposes them again.
//
// In: revisions and notices of new ones (Log), content by hash (Peers, Handler), the disk. Out: proposals (Log),
// AfterSwitch.
//
// Promises: no request for a file sees half of a revision (Gate); nothing is written outside a slot, and symlinks are
// never followed; content is verified before it becomes live, and so is the content it replaces: a file that was edited
// since the last scan is kept and becomes the next proposal; the next Open completes an interrupted switch before
// anything else, and fetches again what a power failure kept from the disk; content that exists only on this disk is
// never deleted, but displaced or put aside; memory is bounded by the number of files, not by their size.
//
// Limits: content that an operator overwrites in place is lost on that node; the others have it. Owners, times,
// extended attributes, hard links, devices, sockets and pipes are not replicated. DESIGN.md has the invariants that
// this package keeps together with others, the crash points, bounds and tests.
package roots
