// Package netconn manages the life of a minion's connection in any transport: it is accepted, named by a load balancer,
// read, cut for a Reason, or frozen and handed to another process.
//
// In: TCP connections from any client, through a Listener. Out: Conn, which the engines of package edge embed and
// extend with a transport. Package budget has the memory and the places that connections share.
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
