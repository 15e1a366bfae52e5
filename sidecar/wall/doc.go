// Package wall is the rules for what minions that have proven who they are may ask: each closes a door that a published
// weakness of some Salt went through, for masters of all versions at once.
//
// In: what was peeked from an opened request (saltwire.Peek), which sidecar/guard has found to be its sender's own.
// Out: a Verdict: it passes, it is refused with an answer to its sender, or it proceeds without the forbidden parts.
// Flaws that show before a request is opened (its shape, the id, the token, commands in clear) are sidecar/guard's to
// find; its findings are counted here by the rule they belong to, so that there is one list of rules.
//
// Vocabulary:
//
//   - A rule has a name, a mode and a default (Rules). Off: nothing is checked. Log: what it finds is counted and
//     logged, and passes. Enforce: it is counted, logged, and refused or cut. A fixed rule is always enforced, because
//     what this program itself does with a request depends on it.
//   - A tag of masters is one that masters fire by and for themselves (tags.go).
//   - A syndic's list is a list of events with a tag put before each one, at a master that says order_masters: only
//     such a master has syndics.
//   - A Minion is what is remembered of one: the highest payload version it has proven to speak, and its budget.
//
// Promises: a request that a stock minion of a supported version makes in the course of its work is never refused (in
// the default modes; for other uses, mode log shows the effect before a rule is enforced); a refused sender gets the
// answer of a stock master that refuses, so that no minion signs in again or exits because of it; no check allocates
// unless it finds something, or has to make an id to look for; memory is bounded. Logs and reasons hold nothing of a
// request but ids.
package wall
