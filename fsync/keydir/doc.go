// Package keydir keeps the minion keys in consensus and the key files of the local stock master the same, in both
// directions.
//
// A stock master, salt-key and the wheel know nothing of a cluster: they move files between pki_dir/minions,
// minions_pre, minions_rejected and minions_denied. Their changes become proposals to consensus, and decisions of
// consensus become files. The package owns the entries of valid minion ids in those four directories, one marker file
// beside them, its base in the state directory, and copies of the files it had to overwrite.
//
// Vocabulary:
//
//   - disk: the content of the directories, as the last scan found it.
//   - base: the state on which disk and consensus last agreed, per id, with the revision in consensus. It is kept in a
//     file, so that after any pause an edit made here (disk differs from base) and a change made elsewhere (consensus
//     differs from base) can be told apart.
//   - edit: disk differs from base. An edit counts only when two scans some time apart find the same, because stock
//     Salt moves, empties and fills files step by step.
//   - stale disk: a directory that is not the one the base describes (no base, restored from a backup, emptied,
//     replaced). Its differences do not count as edits.
//   - overruled files: copies of key files that consensus overruled, put aside in a directory of their own.
//
// The rules, per id (decide.go):
//
//   - Neither has changed since base: nothing to do.
//   - Only disk changed: propose the change, on the condition that consensus is still at base's revision.
//   - Only consensus changed: write it.
//   - Both made the same change: adopt it as the base.
//   - They made different changes: consensus wins, the file is put aside, and a new public key that lost is recorded as
//     denied, as a stock master would.
//   - Base has no key, and both have the same new one: a decision wins over pending, but a decision on disk does so
//     only if consensus has deleted no key of that id since base.
//   - The disk is stale: consensus always wins, and keys unknown to it are proposed as pending. If this node founds the
//     cluster, its operator's decisions count instead, even against a minion that is merely pending.
//
// Promises: a node that was down, restored or partitioned never brings a deleted key back; an edit reaches consensus
// within 300 ms, and a decision reaches the disk in less; without quorum edits wait; directories that cannot be read
// are never treated as empty; the package's own writes do not count as edits; a file appears whole or not at all.
//
// Where nodes share the directories (Config.Shared), one of them at a time, the keeper, mirrors them, and hands its
// base to the next one; see Shared. A keeper that is stopped, for example by SIGSTOP, remains the keeper: decisions of
// consensus are not written until it continues, but they take effect at the edges.
//
// Limits: files that are removed one by one are deletions, even if all of them are removed, as by `salt-key -D`; if
// there are more of them than Config.MaxLosses allows, they are restored and held (losses.go). When single files are
// restored from a backup while the marker stays, they are distinguished from new ones by their modification times and
// the tombstones of consensus. If a tombstone was pruned, or a copy has a new time, the file counts as a key that an
// operator has added.
package keydir
