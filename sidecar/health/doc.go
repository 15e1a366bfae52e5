// Package health reduces many small checks to the few answers that others need: a load balancer's "may minions come
// here", an operator's "why not", and the numbers for monitoring.
//
// It owns the checks' goroutines and results (Checker) and two listeners (Server): HTTP with /livez, /readyz, /pub,
// /req, /leader, /metrics and the page at /status, which others produce, and HAProxy's agent check.
//
// In: named check functions with a scope. Out: ok, warn or fail with a reason.
//
// Promises: a probe costs a map read, never a check, so a flood of probes cannot load the daemon; a check that hangs
// fails by its own timeout and disturbs no other; connections, headers and times are bounded; only trusted networks
// (loopback by default) get reasons, metrics and the page, all others get a status code and the names of the failing
// checks.
//
// Vocabulary: live is "the process works, do not restart it"; ready is "this node may take part"; pub and req are
// "minions may use 4505, 4506 here".
package health
