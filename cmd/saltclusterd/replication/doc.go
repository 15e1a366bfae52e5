// Package replication keeps what the masters store of minions, eauth tokens and jobs alike on all nodes, and brings a
// node that joins or comes back up to date before it serves.
//
// Stores has the engines (packages fsync/datacache, tokens and jobs) for this node and its master. CatchUp fetches what
// this node lacks of them from other members, and what it lacks of the parts that the daemon adds. Until a part has
// caught up, or was given up, members that send changes of it get the answer "starting".
//
// In: the master's configuration, the roster, consensus, what was published and which returns were stored. Out: files
// of the master, calls to members and answers to them, the progress for health and status.
//
// Promises: a question is at most some MiB large and answered for some members at a time. Members of an older
// version are not asked again. Whether this node has caught up never becomes false again.
package replication
