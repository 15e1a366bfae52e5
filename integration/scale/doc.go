// Package scale foretells how a cluster of 3 to 50 nodes with 1,000 to 100,000 minions fares, by simulation.
//
// In: a Site (nodes, minions, cores, networks) and Costs (what single steps cost, with the source of each). Out: when
// the returns of a job are acknowledged, in the job cache and on its replicas (World.Job); when the minions of a node
// that died are served again (Storm); how long a key change takes to be everywhere (Keys); what a node needs
// (Site.Needs).
//
// The steps, their order and what waits for what are those of the packages themselves, with their constants
// (constants.go):
//
//   - Job: sidecar/fanout, sidecar/edge, sidecar (the publisher's node takes all returns, others relay them),
//     sidecar/spool (one fsync for all that wait), sidecar/jobcache (one goroutine writes files; events are paced),
//     fsync/jobs.
//   - Storm: stock minions' timing, sidecar/signin (queue with lanes, budget, workers).
//   - Keys: fsync/keydir (debounce, two looks, rounds), consensus (a barrier entry tells of the commit).
//
// Machines have cores that processes share fairly (Host), disks and cards that serve one after the other (Station). A
// run with the same seed is the same everywhere.
//
// Not modelled: Python other than the master's part of an event and of a sign-in, packet loss, the garbage collector,
// file systems that slow down as they fill, the command line tool, several loads at a time.
// docs/explanation/sizing.md has what follows.
package scale
