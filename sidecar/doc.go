// Package sidecar is the proxy in front of one stock salt-master: it composes edge, guard, router, sign-in, upstream
// and relay into the path of a request, and passes the local master's publications to the fan-out.
//
// The path of a request (Proxy): edge → parse the envelope → guard → open a copy with the minion's session key → read
// the command → guard (open.go) → router.Decide → an action, whose outcome router.Next judges (carry.go) → the reply
// goes back byte for byte. Nothing is decrypted in order to change it: the master gets the bytes that the minion sent,
// because its session key file was written before the first of them (localmaster.Sessions). If a running 3006 worker
// holds another session key, the same plaintext is encrypted again under that key, and the reply under ours. The same
// is done when a minion used a key that the master gave it before it was adopted.
//
// Where the master's configuration allows it, this package answers requests for files (Files) and accepts returns
// (Returns) itself, whether or not the master is up.
//
// The path of a publication (Intake): the local master's 4505 → open with the master's own AES key, which a hidden
// minion gets by signing in → fanout.Hub.
//
// Promises: unauthenticated bytes reach the master only as a fully validated _auth (or a command an operator allowed);
// a request relayed by a peer is checked as if it came from the network and is never relayed again, and if it is not
// encrypted it can only be an _auth; a request that cannot be answered is dropped, and the minion retries; minions do
// not notice restarts of the master. Requests that read files or pillars wait while the roots are being changed
// (HoldFiles), for seconds at most.
//
// The interfaces this package needs are declared in needs.go; cmd/saltclusterd supplies them.
package sidecar
