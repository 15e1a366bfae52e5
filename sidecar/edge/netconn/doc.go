// Package netconn is the life of a connection of a minion in any transport: accepted, named by a load balancer, read,
// cut for a Reason, frozen and handed to another process.
//
// In: TCP connections of anybody, through a Listener. Out: Conn, which the engines of package edge embed and to which
// they add a transport. The memory and the places that connections share are package budget's.
//
// Promises:
//
//   - a connection is cut for one Reason, which is counted and (rate-limited) logged;
//   - only a connection's own reader closes its descriptor; all others cut;
//   - a Freezer ends with all connections as they were, or all handed over.
//
// A reader holds a pooled buffer only while there is something to read, so that an idle connection costs a parked
// goroutine and a few hundred bytes.
package netconn
