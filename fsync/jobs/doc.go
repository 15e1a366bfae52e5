// Package jobs replicates jobs between the job caches of several masters: salt-run jobs.* on any of them finds what one
// master has published, run or received returns for, even when that master is gone.
//
// A job is a directory of the master's local_cache, jobs/<h[:2]>/<h[2:]>/ with h = hash_type(jid): jid, .load.p,
// .minions.p, .minions.<syndic>.p, nocache, endtime, and <minion>/return.p and out.p for each return. Content is copied
// byte for byte; only the path differs between masters with a different hash_type.
//
// In: publications and stored returns of this node (Published, Stored); what polling finds that Python has written
// (runner jobs, returns that the master stored); and what other members send. Out: files in this master's cache, and
// records for the job's replicas. Events are not replicated: they belong to the bus of the publisher.
//
// Vocabulary:
//
//   - replicas: the nodes that keep a job, the first few in ring order. The node that made it keeps it as well.
//   - item: one thing in a job: a head file (.load.p and the like) or a minion's return.
//   - sum: a checksum over all items of a job. Jobs with equal sums are not compared further. Returns contribute their
//     name, because they never change, and whether they are only there ahead of their publisher; head files contribute
//     rank, time and size.
//   - rank: decides between two head files of the same name: the one with the higher rank is kept, then the later one.
//     A load that was published ranks above one that was derived from a return, a list of minions above an empty one.
//   - record: an item in transit.
//   - own: a job that this node made or changed itself. Its replicas are notified at once. Jobs that came from others
//     are only compared from time to time.
//   - table: the jobs that existed and those that were removed, in the state directory. A job that is missing after a
//     start and had nearly expired counts as removed by the master, even though the removal was not seen.
//   - damaged: a return that a power failure has spoilt. It does not count, and the return of another node replaces it.
//   - dirty: a job of which a peer may lack something. Its id waits in the peer's queue (fsync/feed).
//
// The stream of records is the fast path. It may lose records that do not fit into its queue or cannot be sent; their
// jobs become dirty. Comparison is the reliable path: (jid, sum) of the dirty jobs, or of all jobs after a start and
// from time to time, until an empty digest ends it; then the items of jobs that differ; then records of missing items.
// Both paths start from the sender's disk, so no position has to be remembered.
//
// Promises: a record is on the receiver's disk when it is acknowledged; a return or a file appears whole or not at all;
// a whole return is never changed or removed; a job that is nearly as old as the receiver's keep_jobs is not written
// there, nor is one that the receiver's own cleaning removed, before or after a restart; memory is bounded by the
// number of jobs, queues by bytes; there is one poll of 256 directories and no watch of the kernel, whatever the number
// of jobs and returns.
//
// Limits: a directory without the file "jid" does not count as a job (a stock master removes it). A job that an
// operator removes by hand before it expires comes back from the others. Files above 64 MiB are not replicated.
package jobs
