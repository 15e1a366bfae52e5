// Package admin serves the admin API (package adminapi) over HTTP on a unix socket.
//
// It owns the socket file, the accept loop and the HTTP server. It knows nothing about the cluster: the daemon gives it
// Verbs, each with the function that answers it.
//
// In: connections whose peer credentials (SO_PEERCRED, SO_PEERGROUPS) are those of root, of the daemon's own user, or
// of an allowed group. Out: JSON values, JSON errors with a code and a hint, and newline-delimited JSON for the long
// operations.
//
// Promises: all other clients get a refusal and nothing else; request bodies, connections and times are bounded; at
// most one long operation runs at a time; a client that stops reading never holds up an operation; request bodies (they
// may carry a secret) are never logged; a socket file left behind by a dead daemon is replaced, one that still answers
// is not.
package admin
