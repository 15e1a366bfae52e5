// Package minionview answers what the cluster sees of its minions: which are connected where, which are alive, which
// protocol version they speak, and which of their events a salt-master has handled.
//
// A View owns the presence that the masters report to each other, the events about it that a stock master fires, and
// the protocol versions that minions have proven. It keeps presence.json and protocols.json in the state directory.
//
// In: the connections of the publish port, the requests that package sidecar/wall has seen, the accepted keys, the
// routes, and the reports of the other masters. Out: the answers to operators (Verbs), the answers to other members
// (View.Handle), and the events on the master's bus, which one node of the cluster fires.
//
// Promises: an answer waits for a member that is down no longer than peerrpc.Timeout and names it as missing. A minion
// is not reported lost because of a restart of this process, or because a node was killed a moment ago. What other
// members report is bounded and checked, and counts only for the accepted key of a minion.
package minionview
