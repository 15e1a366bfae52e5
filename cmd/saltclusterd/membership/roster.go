package membership

import (
	"log/slog"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

const (
	// DefaultWeight is the weight of a new member.
	DefaultWeight = 100
	// GossipKeySize is the length of a gossip key in bytes: AES-256.
	GossipKeySize = 32
)

// Roster returns the members of v as the peer port needs them. Unusable entries are logged and left out.
func Roster(v state.View, log *slog.Logger) []node.Entry {
	var out []node.Entry
	for _, mem := range v.Members() {
		e, err := node.ParseEntry(string(mem.ID), mem.Addr, mem.Fingerprint)
		if err != nil {
			log.Error("unusable roster entry", "node", mem.ID, "err", err)
			continue
		}
		out = append(out, e)
	}
	return out
}

// GossipKeys returns the gossip keys of v, the primary first.
func GossipKeys(v state.View) [][]byte {
	var keys [][]byte
	for _, k := range v.GossipKeys() {
		keys = append(keys, k.Key.Bytes())
	}
	return keys
}
