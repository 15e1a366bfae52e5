// Package scale foretells how a cluster of 3 to 50 nodes with 1,000 to 100,000 minions fares, by simulation: what nobody has the machines
// to try out.
//
// In: a Site (nodes, minions, cores, networks) and Costs (what single steps cost, measured, with where). Out: when a job's returns are
// acknowledged, in the job cache and on its replicas (World.Job); when the minions of a node that died are served again (Storm); how long
// a key change takes to be everywhere (Keys); how long a tree takes (Rollout); what goes over which card.
//
// # What is modelled
//
// Who does what, in which order, and what waits for what is that of the packages themselves; their constants stand here again:
//
//   - Job: sidecar/fanout (each edge seals and signs by itself), sidecar/edge (shards write to one subscriber after the other), the
//     publisher's node takes all returns (sidecar/journal.go), others relay them and wait 4 s before they keep them; sidecar/spool (one
//     fsync for all that wait, answers by the writer's goroutine one after the other, two consumers with batches of 256);
//     sidecar/jobcache (files written by one goroutine; events paced); fsync/jobs with fsync/feed (100 ms linger, batches of 2,048 or a
//     MiB, one at a time for each replica, a sync of the file system before each answer).
//   - Storm: stock minions' timing (as integration/herd plays it), sidecar/signin (queue with lanes, budget, workers).
//   - Keys: fsync/keydir (debounce, two looks, rounds), consensus (requests gather while an entry is under way; no pipeline; the commit is
//     told with the next message).
//   - Rollout: fsync/roots (workers, batches, six answers at a time, the author first).
//
// Machines have cores that processes share fairly (Host), disks and cards that serve one after the other (Station). Nothing is fitted:
// what is measured are costs of steps, which Costs lists. A run with the same seed is the same everywhere.
//
// With Shared everything is on one machine, as in the lab, and what that does is modelled, too: a played minion's return is a goroutine that
// the one which has heard starts, and which runs before others are heard; a herd dials so many connections at a time; each port has a load
// balancer of its own (ProxyPerPort); a sync of the file system takes what all nodes have written there; the disk is slower while all
// processors are busy.
//
// # What is not
//
// Processors whose speed changes while they work, as those of a virtual machine's do; Python other than the master's part of an event and
// of a sign-in; packet loss; garbage collection and the scheduler beyond what measured costs hold; file systems that slow down as they
// fill; the command line tool. Loads are one thing at a time: a job, a storm, an edit. "make test-scale" compares with real clusters;
// docs/sizing.md has what follows.
package scale
