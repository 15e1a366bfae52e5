// Package catchup brings a node that joins or comes back up to what the cluster has, before it serves anybody.
//
// Vocabulary:
//
//   - part: one sort of state, as minion keys or jobs. All parts catch up at the same time, independently.
//   - pull: what a part does with one peer: it asks what it lacks, and fetches that. All that has arrived stays, so a
//     pull that was cut off, by a broken connection or the end of either process, resumes with the rest at any peer.
//   - await: for a part that finds its own peers; it only reports its progress.
//   - starved: a part that waits for something that only a peer can give it.
//   - given up: a part that got nothing for so long that waiting longer would only keep minions from being served. It
//     continues by its own means afterwards, and the log says what it lacks.
//
// In: the parts, and the peers in the order in which they are to be asked (Config). Out: Status, at any time.
//
// Promises: Run ends. A part that makes progress is waited for; one that makes none is given up after
// Config.StallTimeout, or after Config.AloneTimeout when no peer is there that could give it anything, unless it is
// Needed. A peer that does not answer costs Config.Silence, then the next one is asked.
package catchup
