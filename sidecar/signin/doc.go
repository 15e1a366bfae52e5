// Package signin answers `_auth`, the sign-in of minions.
//
// A minion whose key consensus knows as accepted, and who offers that very key, is answered here: no Python, two RSA
// private operations (its token, the reply's signature), everything else computed once per epoch or per key. Any other
// sign-in keeps the stock policy: the request goes as it came to the local master, whose autosign, auto_accept,
// autoreject, open_mode and max_minions rules decide. When the master accepts, the key is proposed to consensus first,
// and only then is the minion answered, by this package, with the cluster's keys in place of that master's. A reply
// that does not accept is handed on as the master signed it: it is signed with the cluster's identity already. While
// the local master cannot decide, a peer is asked to (failover.go); what peers ask of us has bounds of its own
// (relaylimit.go) and ends here.
//
// Promises: "rejected" is never an answer to a trouble of ours, because minions exit on it; a sign-in that cannot be
// decided is not answered (the minion tries again) or, when consensus has no quorum, answered "pending". Sign-ins
// wait in one bounded queue (queue: which goes first, which is dropped), use no more than their share of the CPUs
// (budget), so that a storm never starves requests, and cost nothing once the minion has hung up. A minion costs one
// computation at a time however often it asks. Ids that the cluster does not know are let through to the master at a
// rate (turnstile); beyond it they get "pending" and nothing is kept. `salt/auth` is fired once: here for what was
// answered here, by the master for what it decided, on whichever node that is.
package signin
