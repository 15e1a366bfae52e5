// Package returns takes the returns of minions for one node without the help of its salt-master: what it has
// acknowledged is on disk and reaches the job cache of the node that published the job, whatever is killed in between.
//
// In: decrypted _return and _syndic_return loads, from this node's edge and from peers. Out: an answer for the minion
// when the load is on disk; files of the job cache and events on the master's bus (sidecar/jobcache decides which);
// loads for the master's own Python where only that can take them; batches for other nodes.
//
// Each destination has a journal of its own (sidecar/spool), so that one that waits holds up no other:
//
//   - own: returns of this node's jobs. Consumer "files" writes the job cache, "events" fires, and waits while the bus
//     is down. An event whose return is in the job cache is given up when it alone would fill the journal.
//   - stuck: what own's "files" could not write for some seconds although it can write other jobs.
//   - python: what only the local master can take, kept while it does not answer. The oldest goes first.
//   - unanswered: what of that the master does not answer though it answers others: no journal but files, which it gets
//     again one at a time after growing pauses, a few times; then an operator gives them to it, or drops them. A node
//     that leaves hands them over.
//   - to.<node>: returns for a publisher that cannot be reached. When it is back it gets them over the peer port
//     (Handler); once it has left the cluster, the ring's owner of each job does, which may be this node. Consumer
//     "ahead" has returns that wait for longer put into the job caches of the job's replicas in the meantime, marked
//     because its events have not been fired.
//
// Promises: done(nil) means that the load survives a power loss; an error means that no sender got an
// acknowledgement. A load that comes twice byte for byte (relayed and kept because the answer was lost) is taken
// once; a minion's own second try is a second return, which is what it is to a stock master. After Close the next
// process can open the journals at once. DESIGN.md has the invariants that this package and others keep together, the
// crash points, bounds and tests.
package returns
