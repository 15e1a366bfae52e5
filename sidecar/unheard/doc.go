// Package unheard finds the jobs that the local salt-master has published while saltclusterd did not listen, and publishes them.
//
// A stock master writes what it publishes to its job cache first (salt/master.py ClearFuncs._prep_pub, save_load) and then sends it to
// whoever listens: saltclusterd alone. While that is down, or the connection between the two is, the publication is lost, and the command
// line waits for returns that cannot come.
//
// In: the ids of all jobs that this node hears of, from its master and from other nodes; and when it listens to its master (again).
// Out: the publications of those jobs which are in the master's job cache, are younger than a command line waits, and were never heard of.
//
// Promises: a job that this node has heard of is never published again, not by the next process either: the Ledger is a file that a kill
// does not harm. What the ledger cannot know of, because it is from another run of the machine or full, is left alone. A file that has
// come to the job cache in another way than by being published now, such as a backup, is left alone: the time in a job's id, the file's
// and now must agree.
//
// Limits: only where the job cache is the master's own local_cache; at most maxJobs jobs at a time.
package unheard
