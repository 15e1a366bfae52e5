// Package keydir keeps the minion keys of consensus and the key files of the local stock master the same, in both
// directions.
//
// A stock master, salt-key and the wheel know nothing of a cluster: they move files between pki_dir/minions,
// minions_pre, minions_rejected and minions_denied. What they do there becomes a proposal to consensus; what consensus
// decides becomes files. The package owns those four directories' entries of valid minion ids, one marker file beside
// them, its base in the state directory, and copies of what it had to overwrite.
//
// Vocabulary:
//
//   - disk: what lies in the directories now, as the last look found it.
//   - base: what disk and consensus last agreed on, per id, with the revision in consensus. It is kept in a file, so
//     that after any pause an edit made here (disk differs from base) and a change made elsewhere (consensus differs
//     from base) can be told apart.
//   - edit: disk differs from base. It is believed only when two looks some time apart find the same, for stock Salt
//     moves, empties and fills files step by step.
//   - stale disk: a directory that is not the one the base describes (no base, restored from a backup, emptied,
//     replaced). Nothing found there counts as an edit.
//   - overruled files: copies of key files that consensus overruled, put aside in a directory of their own.
//
// The rules, per id (decide.go): disk and consensus both as in base: nothing. Only disk changed: propose it, on the
// condition that consensus still is at base's revision. Only consensus changed: write it. Both: the same change,
// adopt it; different ones, consensus wins, the file is put aside, and a new public key that lost is recorded as
// denied, as a stock master would. Where base has no key and both have the same new one, a decision wins over
// pending, but one on disk only if consensus has deleted no key of that id since base. On a stale disk consensus
// always wins, and keys unknown to it are proposed as pending, unless this node founds the cluster: then its
// operator's decisions count, even against a minion that is merely pending.
//
// Promises: a node that was down, restored or partitioned never brings a deleted key back; an edit reaches consensus
// within 300 ms, a decision the disk in less; without quorum edits wait; directories that cannot be read are never
// treated as empty; the package's own writes do not count as edits; a file appears whole or not at all.
//
// Where nodes share the directories (Config.Shared) one of them at a time, the keeper, mirrors them, and hands its base
// on to the next one; see Shared. A keeper that is stopped, as by SIGSTOP, keeps its turn: then decisions of consensus
// are not written until the keeper continues, but they hold at the edges.
//
// Limits: files that are removed one by one are deletions, even when they are all there are, as `salt-key -D` does
// it; more of them than Config.MaxLosses allows are restored and held (losses.go). When single files come back from a
// backup while the marker stays, they are distinguished from new ones by their modification times and the tombstones
// of consensus. A tombstone that was pruned, or a copy with a new time, looks like an operator who puts a key there.
package keydir
