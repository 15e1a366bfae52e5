// Package wall has the rules for the requests of minions that have proven their identity. Each rule closes a published
// weakness of some version of Salt, for masters of all versions at once.
//
// In: what was read from an opened request (saltwire.Peek), whose sender sidecar/guard has verified. Out: a Verdict:
// the request passes, is refused with an answer to its sender, or proceeds without the forbidden parts. Problems that
// show before a request is opened (its shape, the id, the token, unencrypted commands) are found by sidecar/guard. Its
// findings are counted here by the rule they belong to, so that there is one list of rules.
//
// Vocabulary:
//
//   - A rule has a name, a mode and a default (Rules). Off: nothing is checked. Log: a match is counted and logged, and
//     passes. Enforce: it is counted, logged, and refused or cut. A fixed rule is always enforced, because this
//     program's own handling of a request depends on it.
//   - A tag of masters is one that masters fire by and for themselves (tags.go).
//   - A syndic's list is a list of events with a tag prepended to each, at a master with order_masters: only such a
//     master has syndics.
//   - A Minion is the state kept for one minion: the highest payload version it has proven to speak, and its budget.
//
// Promises: a request that a stock minion of a supported version makes in normal operation is never refused (in the
// default modes; for other uses, mode log shows the effect before a rule is enforced); a refused sender gets the answer
// that a stock master gives when it refuses, so that no minion signs in again or exits because of it; a check allocates
// only if it finds something, or has to build an id to look up; memory is bounded. Logs and reasons contain nothing of
// a request but ids.
package wall
