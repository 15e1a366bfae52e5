// Package statuspage is one page about the cluster for people with a browser: what saltclusterctl status, members,
// ring_info, jobs, roots and minions say, and what this node has done in the last hour.
//
// In: a Source, which is asked the same as the admin socket is. Out: an http.Handler with the page and its two assets,
// which are embedded: nothing is loaded from anywhere else, and the page's policy (CSP) forbids it.
//
// The page is made on the server, whole, so that it works without JavaScript; the script fetches it again and puts the
// changed sections in place of the old ones.
//
// Promises: it only tells, and takes nothing but GET and HEAD. Queries are bounded: however many browsers show the
// page, the Source is asked once in a few seconds, and not at all while none does. The page shows no secrets: ids and
// addresses of minions, names of functions and targets of jobs, but no arguments and no returns. A client that asks by
// a name that is not this host's gets nothing, so that a foreign page in the browser of an operator cannot read it by
// way of a name that it points at loopback. The server that it is part of decides which clients may ask at all (package
// health, health_trusted).
//
// Vocabulary: a view is what the page shows, made from a gathering of answers by pure functions; a series is what was
// counted in steps of Step over the last hour, in memory only.
package statuspage
