// Package statuspage is one page about the cluster for people with a browser. It shows what saltclusterctl status,
// members, ring_info, jobs, roots and minions show, and what this node has done in the last hour.
//
// In: a Source, which answers the same questions as the admin socket. Out: an http.Handler with the page and its two
// assets, which are embedded: nothing is loaded from anywhere else, and the page's policy (CSP) forbids it.
//
// The whole page is rendered on the server, so it works without JavaScript. The script fetches it again and replaces
// the sections that changed.
//
// Promises: the page is read-only, and only GET and HEAD are allowed. Queries are bounded: however many browsers show
// the page, the Source is asked once in a few seconds, and not at all while none does. The page shows no secrets: ids
// and addresses of minions, names of functions and targets of jobs, but no arguments and no returns. A request under a
// name that is not this host's gets nothing, so that a foreign page in an operator's browser cannot read it through a
// name that points to loopback. The server that the page is part of decides which clients may ask at all (package
// health, health_trusted).
//
// Vocabulary: a view is the content of the page, made from a set of answers (a gathering) by pure functions; a series
// has the counts of the last hour in steps of Step, in memory only.
package statuspage
