// Package corpus holds what real minions of three versions asked their masters while they ran a broad set of functions,
// states, mines and events, and what is needed to ask it again: the yardstick for everything that saltclusterd answers
// in a master's place.
//
// testdata/<version>.json.gz are the requests, opened, in order, alike ones left out (record.py says when two are
// alike; record.sh records anew). They were asked with the roots and pillars of testdata. A request is sent again with
// another key's token, a new nonce and time; all else is as it was.
//
// Mutant makes of a request one that no minion sends. View is what a master was seen to do, without what differs
// between any two masters; Diff compares two of them, but for what is meant to differ, which Intended lists and
// docs/contributing/differential.md explains.
package corpus
