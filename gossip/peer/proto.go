package peer

// ALPN names. A protocol that changes incompatibly gets a new number; both are then offered for one release.
const (
	ProtoRaft     = "scd-raft/1"
	ProtoGossip   = "scd-gossip/1"
	ProtoHTTP     = "h2"
	ProtoJoin     = "scd-join/1"
	ProtoStanding = "scd-standing/1"
	ProtoTunnel   = "scd-tunnel/1"
)

// A node which takes a raft or gossip connection says so with one byte before anything else: with TLS 1.3 the dialler's
// handshake is complete before the other side has looked at the certificate, so it would report connections that
// are about to be cut.
const (
	greetAdmitted = 1
	greetBusy     = 2 // admitted, but connections of this protocol are not taken at the moment
)

// exporterLabel names our keying material exporter (RFC 8446 section 7.5).
const exporterLabel = "EXPORTER-scd-join-v1"

// hasGreeting reports whether connections of proto begin with the greeting byte.
func hasGreeting(proto string) bool { return proto == ProtoRaft || proto == ProtoGossip }
