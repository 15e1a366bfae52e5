// Package mirror copies chosen events from one master's bus to the buses of the others, for programs that watch there.
//
// In: the events of the local master's bus, and batches of peers. Out: batches for every peer over the peer port, and
// events cluster/event/<node>/<tag> on the local bus, with their data unchanged.
//
// Promises: nothing here slows down the bus or a peer: the queue for each peer is bounded in number, bytes and age;
// when it is full, the oldest events are dropped and counted. An event arrives at most once, and in order: batches
// carry the number of their first event and the run they belong to. Events from a mirror are never mirrored again, and
// neither are the internal events of masters (internal), wherever a sender says they come from.
//
// A mirror is for watching. For actions that must happen once, there is cluster_event_policy.
package mirror
