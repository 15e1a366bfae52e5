// Package takeover has one saltclusterd serve in the place of another without minions noticing: an upgrade in place.
//
// An Upgrader starts the new process and is its old side. It sends what can be sent while it still serves, freezes
// the parts, sends their state with the connections, and then "go". Afterwards it passes on the answers to requests
// in flight and closes what only one process can have open. A NewSide is the counterpart in the new process. Sockets
// are the listening sockets and the lock of state_dir, which both processes have. A program that cannot take over is
// started again, after Rehearse has tried whether it could listen on its addresses.
//
// In: the parts that can be frozen, exported and imported (the ports for minions, the subscription to the local
// master, the hub); functions by which the daemon opens and closes the rest. Out: the same parts in another process,
// the verb upgrade and the health check "reload". The messages themselves are those of package sidecar/handover.
//
// Promises: until the message "go" any failure leaves the old process serving as before; from then on only the new
// one serves. An address in use is found while the old process still serves. Minions are frozen for no longer than
// the timeouts of freeze and import allow. A message that cannot be parsed ends the takeover.
// DESIGN.md has the invariants that this package and others keep together, the messages, crash points and tests.
package takeover
