// Package adminapi is the vocabulary of the admin socket: the request and
// response values of the versioned HTTP+JSON API under /v1, and the Go client
// that speaks it over a unix socket.
//
// It is a pure leaf: it holds values and one HTTP client, owns no goroutines
// and imports no other package of ours, so the daemon, saltclusterctl and any
// other tool may import it.
//
// In: method calls with a context. Out: the daemon's answer, either a value
// or an *Error (the daemon refused or failed) or an *UnreachableError (no
// daemon could be asked).
//
// Promises: every call is bounded by its context and by a reply-size limit;
// fields are only ever added within /v1; a pointer that is nil means "this node
// does not know", which is not the same as zero. Secrets travel only from
// client to daemon and print as "[redacted]".
//
// Vocabulary: a member is a node the roster lists; its role says what it may
// decide (voter, learner, witness), its state says whether gossip sees it
// (alive, failed, left). An operation (bootstrap, join) streams
// newline-delimited JSON events and ends with exactly one outcome or error.
package adminapi
