// Package catchup brings a node that joins or comes back up to date with the cluster before it serves minions.
//
// Vocabulary:
//
//   - part: one kind of state, such as minion keys or jobs. All parts catch up at the same time, independently.
//   - pull: one exchange between a part and one peer: the part asks what it lacks and fetches it. Data that arrived are
//     kept, so a pull that was cut off resumes with the rest, at any peer.
//   - await: what a part has instead of a pull if it finds its own peers; it only reports its progress.
//   - starved: a part that waits for something that only a peer can give it.
//   - given up: a part that has received nothing for so long that waiting longer would only keep minions from being
//     served. It continues on its own afterwards, and the log says what it lacks.
//
// In: the parts, and the peers in the order in which to ask them (Config). Out: Status, at any time.
//
// Promises: Run ends. It waits for a part that makes progress, and gives up one that makes none after
// Config.StallTimeout, or after Config.AloneTimeout without a peer to fetch from, unless the part is Needed. A peer
// that does not answer costs Config.Silence; then the next one is asked.
package catchup
