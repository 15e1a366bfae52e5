// Package daemon assembles saltclusterd: it is the only package that imports all parts, and determines the order in
// which they open and close.
//
// Vocabulary: the *host* side is what a node has before it belongs to a cluster (configuration, the local master's
// configuration, the node's certificate, admin socket, health). A *member* is a running membership (peer port,
// consensus, gossip, key directory). A *service* is the part of it that minions see (edges, proxy, fan-out); a
// *witness* has none. Each opens when the one before is ready and closes before it.
//
// The files here build capabilities (member.go, service.go, requests.go, disk.go), register the verbs of operators
// (verbs.go) and the health checks (health.go), and determine what opens when: order.go, serving.go, takeover.go.
//
// A membership can end while the daemon keeps running (the type ending): the node was removed (package removal), became
// a cluster of one (package recovery), or lost its log.
//
// A node without a cluster waits for `saltclusterctl bootstrap` or `join` (or joins a configured peer on its own); its
// 4505 and 4506 are closed. A member opens them once it has caught up with consensus and its master's key files are up
// to date; or, if it restarts and finds no majority, with the data it has (package recovery).
package daemon
