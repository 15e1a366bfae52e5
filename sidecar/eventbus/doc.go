// Package eventbus is a client of the event bus of the local salt-master: it fires events and subscribes to them.
//
// A Bus owns the connections to the two sockets of the master's event publisher and the queue of events that wait for
// it. If a master ends before it has read events, the Bus fires them again at the next one.
//
// In: events to fire, the master's configuration. Out: events of the bus, whether the bus accepts events, whether the
// master's own subscribers are connected, and the umask of the process that listens there.
//
// Promises: events are fired in the order in which they were handed over; memory is bounded; an event that is too large
// for the bus is trimmed as a stock master does.
package eventbus
