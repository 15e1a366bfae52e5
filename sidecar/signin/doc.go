// Package signin answers `_auth`, the sign-in of minions.
//
// A minion whose key consensus has accepted, and which presents that very key, is answered here: no Python, two RSA
// private operations (its token, the reply's signature), and everything else computed once per epoch or per key. All
// other sign-ins follow the stock policy: the request goes unchanged to the local master, whose autosign, auto_accept,
// autoreject, open_mode and max_minions rules decide. If the master accepts, the key is first proposed to consensus;
// only then does this package answer the minion, with the cluster's keys in place of that master's. A reply that does
// not accept is passed on as the master signed it, which is with the cluster's identity. While the local master cannot
// decide, a peer is asked (failover.go). Requests from peers have limits of their own (relaylimit.go) and are not
// passed on.
//
// Promises:
//
//   - "rejected" is never the answer to a problem on our side, because minions exit on it. A sign-in that cannot be
//     decided is not answered (the minion retries) or, if consensus has no quorum, answered "pending".
//   - Sign-ins wait in one bounded queue (queue decides which goes first and which is dropped), use no more than their
//     share of the CPUs (budget), so that many of them never starve requests, and cost nothing once the minion has
//     disconnected.
//   - A minion costs one computation at a time, however often it asks.
//   - Ids that the cluster does not know are passed to the master at a limited rate (turnstile). Beyond that rate they
//     get "pending", and nothing is stored.
//   - `salt/auth` is fired once: here for sign-ins that were answered here, and by the master for those it decided, on
//     whichever node that is.
package signin
