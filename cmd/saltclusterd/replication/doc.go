// Package replication keeps what the masters store of minions, eauth tokens and jobs alike on all nodes, and brings a
// node that joins or comes back up to date before it serves.
//
// Stores has the engines (packages fsync/datacache, tokens and jobs) for this node and its master. CatchUp fetches what
// this node lacks of them from other members, together with the parts that are given to it. Until a part is there, or
// was given up, other members are answered "starting" when they send what is new of it.
//
// In: the master's configuration, the roster, consensus, what was published and which returns were stored. Out: files
// of the master, calls to members and answers to them, the progress for health and status.
//
// Promises: a question is at most some MiB large and answered for some members at a time. Members of an older
// version are not asked again. Whether this node has caught up never becomes false again.
package replication
