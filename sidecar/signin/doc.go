// Package signin answers `_auth`, the sign-in of minions.
//
// A minion whose key consensus knows as accepted, and who offers that very key, is answered here: no Python, two RSA
// private operations (its token, the reply's signature), everything else computed once per epoch or per key. Any other
// sign-in keeps the stock policy: the request goes as it came to the local master, whose autosign, auto_accept,
// autoreject, open_mode and max_minions rules decide. When the master accepts, the key is proposed to consensus first,
// and only then is the minion answered, by this package, with the cluster's keys in place of that master's. A reply
// that does not accept is handed on as the master signed it: it is signed with the cluster's identity already.
//
// Promises: "rejected" is never an answer to a trouble of ours, because minions exit on it; a sign-in that cannot be
// decided is not answered (the minion tries again) or, when consensus has no quorum, answered "pending". Sign-ins wait
// in one bounded queue, are given up when the minion has hung up, and at most Workers of them compute at a time, so
// that a storm never starves requests. `salt/auth` is fired once: here for what was answered here, by the master for
// what it decided.
package signin
