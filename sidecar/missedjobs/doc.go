// Package missedjobs publishes the jobs that the local salt-master published while saltclusterd was not connected to
// it.
//
// A stock master writes a job to its job cache before it sends the job to its subscribers (salt/master.py
// ClearFuncs._prep_pub and publish). Its only subscriber is saltclusterd. While saltclusterd is down, or the connection
// between the two is broken, the publication is lost and the command line waits for returns that cannot arrive.
//
// In: the ids of all jobs that this node receives, from its own master and from other nodes, and a notice whenever the
// subscription is established. Out: publications of those jobs in the master's job cache that no command line has given
// up on and this node has not seen.
//
// Promises: a job that this node has seen is never published again, not even by a later process; Ledger is a file that
// survives a kill. Jobs from before the ledger begins are left alone. So are files that reached the job cache in
// another way, such as a restored backup: the time in the job id, the file's modification time and the clock must
// agree.
//
// It also says which publications are overdue: the master made them while this process stood still.
//
// Limits: it works only with the master's own local_cache; one scan publishes at most maxJobs jobs.
package missedjobs
