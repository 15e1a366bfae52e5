// Package rootsadmin is file_roots and pillar_roots of this node as the cluster and operators see them. The engine that
// keeps the trees equal is package fsync/roots; this package connects it to consensus, to the other members and to the
// salt-master beside it.
//
// It owns the engine, the slots (which directories of the master's configuration are replicated, and why the others are
// not), and what the other masters say about the order of theirs. A node whose roots are not replicated has a Roots as
// well, which says why.
//
// In: the master's configuration, consensus (Log), calls of members (Handle), what operators ask (Verbs). Out:
// proposals, calls to members, a health check, a line of the status, the ledger that verify compares.
//
// Promises: no revision is proposed before all members understand it. The master and minions see whole revisions only:
// requests for files wait during a switch, and lists of files that the master keeps are removed. A joiner is let in
// when the founder's roots are the cluster's.
package rootsadmin
