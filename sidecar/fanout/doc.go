// Package fanout delivers one publication of any master to every minion of the cluster once.
//
// In: the plaintext publications of the local master (Hub.Local) and of the peers (Inbox). Out: on this node's 4505,
// each of them sealed once under the cluster's epoch, signed if the master signs, and stamped with this edge's own
// strictly growing serial; and to every peer, over one ordered stream each (Links), the plaintext of the local ones.
//
// Vocabulary:
//
//   - origin: the node whose master published.
//   - record: the unit that nodes exchange: a publication, a sign-in notice (package epochs) or a heartbeat. Each
//     carries the origin's clock.
//   - outbox: the origin's bounded log of records, encoded once for all peers.
//   - link: one peer's cursor in the outbox.
//
// Promises: a record reaches a connected peer at most once and in order (by sequence numbers per origin and run of its
// daemon; when a link is re-established, the receiver reports how far it got, or since when it has been serving if it
// has nothing of that origin, and the rest is sent). A publication older than MaxAge is not delivered late. A slow or
// absent peer costs the outbox's limit and nothing else. The heartbeats keep the serials of all nodes in step, so a
// minion that moves to another node does not see them go back.
package fanout
