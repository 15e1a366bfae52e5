// Package lifecycle opens and closes the parts of a service in a fixed order and starts its duties, in a process that
// starts cold and in one that takes over from another.
//
// A Tenure holds the membership that a process serves, from one membership to the next.
//
// Parts has a list of parts. Each has a phase, which says when a process that takes over opens it. Duties are
// background tasks, each of which names the stages at which it starts.
//
// In: the lists, which the daemon makes. Out: opened and closed parts, running duties.
//
// Promises: parts are closed in the reverse order of the list, no matter when they were opened; a part that is not
// open is not closed. A duty starts once.
package lifecycle
