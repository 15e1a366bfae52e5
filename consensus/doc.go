// Package consensus runs the raft node that keeps consensus/state the same on every member of the cluster.
//
// In: commands (Propose, on any node), requests which other nodes forward (HandleForward), connections of the raft
// protocol from the peer port. Out: Views of the state, a notification when it changed, and how far this node is
// (Status, CaughtUp).
//
// Vocabulary:
//
//   - Roster: the members in the state. It alone decides who belongs to the cluster.
//   - Configuration: raft's own list of voters and learners. The leader moves it towards the roster: a new member
//     becomes a learner, then a voter once it has caught up and kept up; a node that is not on the roster is removed.
//   - Reserve: members that could vote but do not, because there are enough voters. One of them replaces a voter that
//     has been dead for too long.
//   - Generation: how often the cluster was recovered from a remaining node (Recover) or restored from a snapshot
//     (Restore). Both change the log of a node that does not run.
//   - Serving: the node leads and has passed its first barrier. Leader duties run under a context that ends when it
//     loses the leadership.
//   - Index: position of a command entry in the log.
//
// Promises: a proposal is applied at most once, even if it was retried across leader changes; if it may have been
// applied, Propose returns ErrUncertain. Writes need a majority and are refused with ErrNoLeader otherwise. Reads
// (View) need no other node and may be stale; Barrier makes them current. A node that restarts has at once the state of
// a second before it ended, even if no other node can be reached. A raft address is a node id, so a changed IP needs no
// change of the configuration. Nothing is bootstrapped unless Bootstrap is called. The leader demotes or removes no
// voter if the remaining live voters would not be a majority. A node with a damaged log does not start (ErrDamaged); a
// node with a full disk keeps running but acknowledges nothing.
//
// All files lie in Config.Dir: directory 0700, files 0600, because the log and the snapshots hold the cluster's
// secrets.
package consensus
