// Package takeover has one saltclusterd serve in the place of another without minions noticing: an upgrade in place.
//
// Sockets are the listening sockets and the lock of state_dir, which both processes have. Rehearse tries, for a program
// that cannot take over and has to be started anew, whether it could listen on its addresses.
//
// In: the listeners that the parts of a node ask for. Out: the same listeners in another process.
//
// Promises: an address in use is found while the old process still serves; a process that fails to take over changes
// nothing on disk.
package takeover
