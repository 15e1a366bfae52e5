// Package native answers requests of minions without the local salt-master, where that changes nothing for them.
//
// A Service decides by the master's configuration which returns, events, requests for files and requests about mines
// are taken natively, and follows that configuration. It leaves the rest to the master. Peers shows the other nodes to
// package sidecar/returns. Verbs are what operators ask about returns that the master does not answer.
//
// In: the master's configuration, the stores of returns and mines, the roster. Out: the services of packages
// sidecar/returns, events, fileserve and mines, a health.Result, parts of the status.
//
// Promises: what depends on options that cannot be read is left to the master; a path is changed only when the options
// that it depends on have changed.
package native
