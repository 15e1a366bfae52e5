// Package events fires the events of minions (_minion_event) on the local master's bus without the master's Python,
// which needs 1.5 to 2.6 ms of CPU for each.
//
// In: decrypted loads. Out: events in the order in which their loads arrived, and an answer for the minion when the
// master has accepted them. sidecar/jobcache decides which events a load makes, and which loads only the master's own
// code can judge.
//
// Nothing is kept on disk: as with a stock master, an event without an answer may have been fired, and one with an
// answer was. While the bus is down, loads are refused (ErrPython: the load then goes to a peer's master, like any
// other request). A load that arrives twice byte for byte, because a relay's answer was lost or a minion retried, is
// fired once. The queue is bounded by number and bytes. Loads beyond that are left to the master, and so is a list of
// events that would occupy the bus for long.
//
// Promises: done(nil) means that the bus has the events; ErrPython means that none of them was fired and none will be;
// ErrUnsure means that the bus stopped in the middle, so that they must not be fired again.
package events
