// Package native answers requests of minions without the local salt-master, where that changes nothing for them.
//
// A Service decides by the master's configuration, which it follows, which returns, events, requests for files and
// requests about mines are handled here. It leaves the rest to the master. Peers gives package sidecar/returns access
// to the other nodes. Verbs answers operators about returns that the master does not answer.
//
// In: the master's configuration, the stores of returns and mines, the roster. Out: the services of packages
// sidecar/returns, events, fileserve and mines, a health.Result, parts of the status.
//
// Promises: requests that depend on unreadable options are left to the master; the handler of a request changes only
// when the options that it depends on have changed.
package native
