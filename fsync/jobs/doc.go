// Package jobs gives the job caches of several masters the same jobs: what one master has published, run or taken
// returns of is found with salt-run jobs.* on the others, also when that master is gone.
//
// A job is a directory of the master's local_cache, jobs/<h[:2]>/<h[2:]>/ with h = hash_type(jid): jid, .load.p,
// .minions.p, .minions.<syndic>.p, nocache, endtime, and <minion>/return.p and out.p for each return. Bytes are carried
// as they are; only the place differs between masters of different hash_type.
//
// In: publications and stored returns of this node (Published, Stored), what polling finds of Python's own writing
// (runner jobs, returns that the master stored), and what other members send. Out: files in this master's cache,
// records to the job's replicas. No events: those belong to the bus of the publisher.
//
// Vocabulary:
//
//   - replicas: the nodes that shall have a job, the first few in ring order. The one that made it has it besides.
//   - item: one thing in a job: a head file (.load.p and its like) or a minion's return.
//   - sum: of all items of a job. Equal sums need no second look. Returns count by name, because they never change,
//     and by whether they are only there ahead of their publisher; head files by rank, time and size.
//   - rank: of two head files of one name the one with the higher rank is kept, then the later one. A load that was
//     published ranks above one that was kept from a return, a list of minions above an empty one.
//   - record: an item on its way.
//   - own: a job that this node itself made or changed, so that it notifies the replicas at once. Jobs that came from
//     others are only compared from time to time.
//   - table: which jobs there were and which were removed, in the state directory. A job that is missing after a start
//     and was nearly over has been removed by the master, even if that was not seen.
//   - damaged: a return that a power loss has spoilt. It counts as none, and that of another node takes its place.
//   - dirty: a job that a peer may lack something of. Its id waits in the peer's line (fsync/feed).
//
// The stream of records is the fast way; it may lose what does not fit its queue or cannot be sent, which makes the job
// dirty. The sure way is a comparison: (jid, sum) of dirty jobs, or of all after a start and from time to time, and
// then an empty digest ends it; the items of jobs that differ; records of what is lacking. The sender's disk is what
// both start from, so no position has to be remembered.
//
// Promises: a record is on the receiver's disk when it is acknowledged; a return and a file appear whole or not at all;
// a return that is whole is never changed or removed; a job that is nearly as old as the receiver's keep_jobs is not
// written there, nor one that its own cleaning removed, before or after a restart; memory is bounded by jobs, queues by
// bytes; there is one poll of 256 directories and no watch of the kernel's, whatever the number of jobs and returns.
//
// Limits: a job whose file "jid" is missing is none (a stock master removes it). What an operator removes by hand
// before its time comes back from the others. Files above 64 MiB stay where they are.
package jobs
