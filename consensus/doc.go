// Package consensus runs the raft node that keeps consensus/state the same on
// every member of the cluster.
//
// In: commands (Propose, on any node), requests which other nodes forward
// (HandleForward), connections of the raft protocol from the peer port.
// Out: Views of the state, a notification when it changed, and an honest
// account of where this node stands (Status, CaughtUp).
//
// Vocabulary:
//
//   - Roster: the members in the state. It is the truth about who belongs.
//   - Configuration: raft's own list of voters and learners. The leader moves
//     it towards the roster: a new member becomes a learner, and a voter once
//     it has caught up and stayed so; a node that is not on the roster is
//     removed.
//   - Reserve: members that could vote and do not, because enough do. One gets
//     the vote of a voter that is dead for too long.
//   - Generation: how often the cluster was recovered from a node that was left
//     (Recover) or restored from a snapshot (Restore), both of which are done to
//     the log of a node that does not run.
//   - Office: the time from taking leadership (and passing a barrier) until
//     losing it. Leader duties run under a context that ends with it.
//   - Serving: leads, and its barrier was passed.
//   - Index: position of a command entry in the log.
//
// Promises: a proposal is applied at most once, also when it was retried across
// leader changes; when Propose cannot tell, it says ErrUncertain. Writes need a
// majority and are refused with ErrNoLeader otherwise. Reads (View) need
// no other node and may be stale; Barrier makes them current. A node that restarts
// knows at once what it knew a second before it ended, also while the others
// are away. A raft address is a node
// id, so a changed IP needs no change of the configuration. Nothing is
// bootstrapped unless Bootstrap is called. The leader takes no vote from the
// living when the rest would be no majority. A damaged log is an error at the
// start (ErrDamaged), not a vote; a full disk makes the node silent, not dead.
//
// All files lie in Config.Dir: directory 0700, files 0600, because the log
// and the snapshots hold the cluster's secrets.
package consensus
