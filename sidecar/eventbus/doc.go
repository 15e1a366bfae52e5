// Package eventbus is a client of the event bus of the local salt-master: it fires events and subscribes to them.
//
// A Bus owns the connections to the two sockets of the master's publisher of events, the queue of events that wait for
// it, and what keeps subscribers that read slowly from being cut off by it.
//
// In: events to fire, the master's configuration. Out: events of the bus, whether it takes events, which subscribers it
// has, and the umask of the process that listens there.
//
// Promises: events are fired in the order in which they were handed over; memory is bounded; an event that is too large
// for the bus is trimmed as a stock master does.
package eventbus
