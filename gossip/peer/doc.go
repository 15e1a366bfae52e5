// Package peer is the port for all traffic between nodes: TLS 1.3 over tcp. ALPN tells the protocols apart.
//
//	scd-raft/1    raft RPC            Listener(ProtoRaft), Dial
//	scd-gossip/1  memberlist streams  Listener(ProtoGossip), Dial
//	h2            peer RPC            Config.Handler, HTTPClient
//	scd-join/1    joining             Config.Join, the function Join
//	scd-standing/1  "am I a member?"  Config.Standing, AskStanding; any certificate may ask
//	scd-tunnel/1  a path to another member  used by Dial and HTTPClient
//
// The udp port of the same number belongs to package gossip.
//
// # Vocabulary
//
//   - Identity: a node's own self-signed P-256 certificate; its private key never leaves the state directory.
//     It is renewed regularly.
//   - Predecessors: the certificates that an Identity had before, which it presents with its own (renew.go). Each
//     signs the next, so that a node whose roster still has an older one finds it among them.
//   - Roster: who belongs to the cluster, by certificate fingerprint. Supplied by the daemon from the consensus state
//     and read live at every handshake; the only authority this package knows.
//   - Book: a Roster that survives restarts. Raft replays its log only after a leader has contacted it, so a restarted
//     node needs to know its members before that.
//   - Admission: check against the roster plus registration, under one lock, after the handshake. Revoke takes the same
//     lock, so no connection slips through between the two.
//   - Secret: what proves the right to join (cluster_secret). It is never sent and never logged. The cluster may accept
//     two for a while; each has a number.
//   - Token: what proves the right to join once (package jointoken). Members know the public half only.
//
// # Promises
//
//   - A connection handed to a consumer belongs to a member, and Remote names it. After Revoke(fp) returned,
//     every connection of that certificate is closed in both directions. A connection whose certificate left the roster
//     without Revoke is closed within about a second.
//   - Dial for raft and gossip returns only after the other side has admitted us (a TLS 1.3 handshake alone does not
//     say so).
//   - Unauthenticated peers cost bounded memory and time: handshakes are limited in number (overall and per address)
//     and to five seconds; addresses of members have places of their own, so that a flood does not keep members out.
//     Among strangers the network with the most places gives way, so that waiting ones do not keep joiners out.
//   - Raft and peer RPC reach a member that this node does not reach directly, if another member reaches both: through
//     a tunnel (tunnel.go), with TLS from end to end. Gossip probes through other members itself.
//   - A consumer that does not call Accept delays only itself.
//   - With an empty roster (a node before bootstrap or join) nothing is admitted and joins are refused; only the
//     function Join works.
//
// # Joining
//
// TLS with any self-signed certificate, then frames (type, length, body). Both sides prove knowledge of the secret with
//
//	HMAC-SHA256(secret, "scd-join-v1" | role | exporter | joiner id | member id | joiner fp | member fp)
//
// each field behind its length. The exporter binds the proof to this very TLS channel, so a man in the middle cannot
// pass it on. The fingerprints are in it because the exporter does not cover the client's certificate; the role stops
// reflection. The joiner proves first. The member answers only after it has checked the proof, with a refusal or with a
// proof of its own; a connection that ends earlier says nothing about the secret. Then the member shows the cluster id
// and signs the channel with the cluster's RSA key, and only after the joiner has verified both does it disclose
// anything about itself. A man in the middle does see one proof for a channel of their own, so the secret must be
// random: see ValidateSecret and NewSecret.
//
// With a token the joiner signs the same fields with the token's key (hello of version 2), and the member has nothing
// to prove but the cluster's key, whose fingerprint is part of the token. Whether a token has expired or was used is
// decided by JoinHandler.Admit, in one step with taking the node in.
package peer
