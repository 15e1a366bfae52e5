// Package fanout makes one publication of any master reach every minion of the cluster once.
//
// In go the plaintext publications of the local master (Hub.Local) and of the peers (Inbox). Out goes, on this node's
// 4505, each of them sealed once under the cluster's epoch, signed when the master signs, and stamped with this edge's
// own strictly growing serial; and to every peer, over one ordered stream each (Links), the plaintext of the local
// ones.
//
// Vocabulary: the origin is the node whose master published. A record is what travels between nodes: a publication,
// a sign-in notice (package epochs) or a heartbeat; each carries the origin's clock. The outbox is the origin's bounded
// log of records, encoded once for all peers; a link is one peer's cursor in it.
//
// Promises: a record reaches a connected peer at most once and in order (sequence numbers per origin and run of its
// daemon; when a link is re-established, the receiver reports how far it got, or since when it serves if it has
// nothing of that origin, and the rest is sent). A publication older than MaxAge is not delivered late. A slow or
// absent peer costs the outbox's bound and nothing else. Serials of all nodes stay in step through the heartbeats, so
// that a minion which moves to another node does not see them go back.
package fanout
