// Package returns accepts the returns of minions for one node without its salt-master: an acknowledged return is on
// disk and reaches the job cache of the node that published the job, whatever is killed in between.
//
// In: decrypted _return and _syndic_return loads, from this node's edge and from peers. Out: an answer for the minion
// when the load is on disk; files of the job cache and events on the master's bus (sidecar/jobcache decides which);
// loads for the master's own Python where only Python can handle them; batches for other nodes.
//
// Each destination has a journal of its own (sidecar/spool), so that one that waits does not hold up the others:
//
//   - own: returns of this node's jobs. Consumer "files" writes the job cache; consumer "events" fires, and waits while
//     the bus is down. An event whose return is in the job cache is given up when it alone would fill the journal.
//   - stuck: returns that own's "files" could not write for some seconds although it can write other jobs.
//   - python: loads that only the local master can handle, kept while it does not answer. The oldest goes first.
//   - unanswered: those of them that the master does not answer although it answers others. This is not a journal but a
//     directory of files. The master gets them again one at a time after growing pauses, a few times; then an operator
//     gives them to it, or drops them. A node that leaves hands them over.
//   - to.<node>: returns for a publisher that cannot be reached. When it is back, it gets them over the peer port
//     (Handler). Once it has left the cluster, the ring's owner of each job gets them, which may be this node. In the
//     meantime, consumer "ahead" has returns that wait for longer written to the job caches of the job's replicas,
//     marked because their events have not been fired.
//
// Promises: done(nil) means that the load survives a power failure; an error means that no sender got an
// acknowledgement. A load that arrives twice byte for byte (relayed, and kept because the answer was lost) is accepted
// once; a minion's own retry is a second return, as it is to a stock master. After Close the next process can open the
// journals at once. DESIGN.md has the invariants that this package keeps together with others, the crash points, bounds
// and tests.
package returns
