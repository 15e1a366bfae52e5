// Package masterlink connects to the stock salt-master beside this node, and observes it.
//
// A Link has the connections to it (requests, publications, event bus) and keeps saltclusterd signed in there. An
// Inspector reports faults in the master's configuration, and files and options of this master that should be the same
// on all masters. FollowedOptions are the master's options that determine how saltclusterd serves minions. A Watch
// follows its restarts, and has a new process take over when the master's version or key store has changed. Umask is
// the umask for files that are written on the master's behalf. KeyStore is the master's own key store.
//
// In: the master's configuration, files, process and event bus, and what the key directory found in the store. Out:
// findings, health.Results, parts of the status, upgrades in place.
//
// Promises: of the master's files only its key store is written to, by KeyStore.PlaceHidden; every background task ends
// with its context.
package masterlink
