// Package mirror copies chosen events from one master's bus to the buses of the others, for programs that watch
// there.
//
// In: the events of the local master's bus, and batches of peers. Out: batches for every peer over the peer port, and
// events cluster/event/<node>/<tag> on the local bus, with the data as they are.
//
// Promises: nothing here slows the bus or a peer down: what waits for a peer is bounded in number, bytes and age, and
// what has to be dropped, the oldest first, is counted. An event arrives at most once, and in order: batches carry the
// number of their first event and the run they belong to. What came from a mirror is never mirrored again, and neither
// are tags with which masters tell themselves something (internal), wherever a sender says they come from.
//
// A mirror is for watching. Actions that must happen once are the business of cluster_event_policy.
package mirror
