// Package node has the types that describe one node in every part of the cluster: its ID, the Fingerprint of its
// certificate, its Entry in the roster and the Meta it gossips about itself.
//
// It is a pure leaf: no goroutines, no sockets, no clock; any package may import it.
//
// Vocabulary:
//
//   - ID: the name of a node, unique in the cluster, lower case, safe in URLs, file names and log lines.
//   - Fingerprint: SHA-256 over the DER form of a node's own certificate, 64 lower-case hex digits. This, not the ID,
//     is what a connection is checked against.
//   - Entry: what the roster (a part of the consensus state) says about a member.
//   - Meta: up to [MaxMeta] bytes of hints about a live node. No decision about trust or membership may be based on
//     them.
package node
