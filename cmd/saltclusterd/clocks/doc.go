// Package clocks compares the wall clock of this host with those of the other members.
//
// Wall clocks are compared with one another only, not with the logical clock of the serials, which follows the node
// that is furthest ahead.
//
// In: the time and the newest serial of every other member, asked for at intervals. Out: a time that follows the
// majority of the members (the base of this node's logical clocks), a health check of this host's clock, and the
// problems of the other hosts' clocks for the status.
//
// Promises: a member that does not answer, or whose answer is old, is not judged; unless a majority agrees on a time,
// no clock is reported as wrong.
package clocks
