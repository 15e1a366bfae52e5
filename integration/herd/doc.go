// Package herd plays thousands of Salt minions in one process, at the level of what they say on the wire.
//
// # Vocabulary
//
// A Herd is minions of one or several versions that know one address, that of a master, a node or a load balancer. A
// Profile is how minions of a version behave where 3006, 3007 and 3008 differ. A Job is a publication that was for the
// herd, with what became of it.
//
// # What a played minion does
//
// It signs in as stock minions do (payload version 3; five seconds a try, seven tries with one nonce, then a pause and
// again; "pending" waits acceptance_wait_time), checks every signature, token and nonce of the reply, subscribes at
// 4505, opens each publication with the key it holds, signs in once when it cannot and tries again, checks signature
// and serial, ignores jobs that are not for it or that it has seen, and returns over a request connection that it
// keeps: three tries of five to ten seconds, a new sign-in after "bad load". Connections come back as libzmq brings
// them back: 4505 after a random time out of recon_default to recon_default + recon_max, at most recon_max, doubled
// each time; 4506 after 100 ms, doubled up to 5 s. A request that was under way when its connection broke is not
// repeated before its time is up. 3007 and 3008 notice a broken 4505 (zmq_monitor) and start over: sign-in,
// subscription, start event, and 3008 registers its resources. None asks for its pillar, runs a job in a process of its
// own or loads modules: that is a minion's own CPU time, or the master's Python either way.
//
// # What it costs
//
// Much less than what it asks for, for both share a machine: one key pair serves all ids, a key pair of sixteen prime
// factors, with which a private operation takes an eighth of the usual time while the public key looks like any other;
// a publication is opened and verified once for all that hold the same key. CPU tells what the process has used.
//
// # Promises
//
// Everything is bounded: minions, connections, tries, time. Close ends every connection and waits for all goroutines.
// Whatever a stock minion would not accept is counted as wrong in Stats, never passed over.
package herd
