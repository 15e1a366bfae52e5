// Package clocks compares the wall clock of this host with those of the other members.
//
// The wall clocks are compared with one another, and never with the clock of the serials, which follows the one that is
// ahead.
//
// In: the time and the newest serial of every other member, asked for at intervals. Out: a time that follows the
// majority of the members (the base of this node's logical clocks), a health check of this host's clock, and the
// problems of the other hosts' clocks for the status.
//
// Promises: a member that does not answer, or whose answer is old, is not judged; where no majority agrees on a time,
// no clock is called wrong.
package clocks
