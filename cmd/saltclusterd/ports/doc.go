// Package ports has 4505 and 4506, the ports that minions connect to.
//
// Ports makes both edges (package sidecar/edge), waits for them while another process has them, keeps them on the
// addresses of this host, and notices when one ends on its own.
//
// In: the options about edges, what serves requests, the addresses of this host. Out: the two edges, rows of the
// status, whether another process has the ports.
//
// Promises: a port that is taken is tried until its context ends, and logged once. An address that cannot be listened
// on yet is tried again; without any address of the host the ports stay where they are.
package ports
