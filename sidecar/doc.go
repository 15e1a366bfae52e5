// Package sidecar is the proxy in front of one stock salt-master: it composes edge, guard, router, sign-in, upstream
// and relay into the path of a request, and the local master's publications into the fan-out.
//
// The path of a request (Proxy): edge → parse the envelope → guard → open a copy with the minion's session key → peek
// at the command → guard (open.go) → router.Decide → an action, whose end router.Next judges (carry.go) → the reply
// goes back byte for byte. Nothing is decrypted to be changed: the master gets the bytes the minion sent, because its
// session key file was written before the first of them (localmaster.Sessions). Where a running 3006 worker holds
// another session key, the same plaintext is sealed anew under that one, and the reply under ours. So is what a minion
// has sealed with a key that the master gave it before it was adopted.
//
// Requests for files are answered here where the master's configuration allows it (Files), whether or not the master is
// up; so are returns (Returns).
//
// The path of a publication (Intake): the local master's 4505 → open with the master's own AES key, learnt by signing
// in as a hidden minion → fanout.Hub.
//
// Promises: unauthenticated bytes reach the master only as a fully validated _auth (or a command an operator allowed);
// a request relayed by a peer is checked as if it came from the network and never relayed again, and in clear it can be
// nothing but an _auth; a request that cannot be answered is dropped, and the minion's own retry decides; the master's
// restarts end here. Requests that read files or pillars wait while the roots are being changed (HoldFiles), for
// seconds at most.
//
// The interfaces this package needs are declared in needs.go; cmd/saltclusterd supplies them.
package sidecar
