// Package masterlink connects to the stock salt-master beside this node, and observes it.
//
// A Link has the connections to it (requests, publications, event bus) and keeps saltclusterd signed in there.
// An Inspector reports faults in the master's configuration, and what the master has for itself that all masters must
// have alike. FollowedOptions are those of its options by which saltclusterd serves minions. A Watch follows its
// restarts, and renews this program for another version or another key store. Umask is the umask for files that are
// written in the master's place. KeyStore is the key store of the master's own.
//
// In: the master's configuration, its files and its process, its event bus, and what the key directory found in the
// store. Out: findings, health.Results, parts of the status, upgrades in place.
//
// Promises: of the master's files only its key store is written to, by KeyStore.PlaceHidden; every background task
// ends with its context.
package masterlink
