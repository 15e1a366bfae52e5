// Package events fires what minions say (_minion_event) on the local master's bus without the help of its Python, which
// needs 1.5 to 2.6 ms of CPU for each.
//
// In: decrypted loads. Out: events in the order in which their loads came, and an answer for the minion when the master
// has taken them. sidecar/jobcache decides which events a load makes, and which loads only the master's own code can
// judge.
//
// Nothing is kept on disk: as with a stock master an event that is not answered was perhaps fired, and one that is
// answered was. While the bus is down nothing is taken (ErrPython: the load then goes to a peer's master, as any other
// request does). A load that comes twice byte for byte, because a relay's answer was lost or a minion asked again, is
// fired once. What waits is bounded by number and bytes; what is more is left to the master, as is a list of events
// that would keep the bus for long.
//
// Promises: done(nil) means that the bus has the events; ErrPython, that none of them was fired and none will be;
// ErrUnsure, that the bus stood still in the middle, so that they must not be fired again.
package events
