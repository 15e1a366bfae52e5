package daemon

import (
	"context"
	"net/http"
	"path/filepath"
	"saltclusterd/fsync/replica"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
)

// replicated is what stores are given that all masters have in common; dir is that of a table.
func (s *service) replicated(dir string) replica.Config {
	d := s.m.d
	return replica.Config{
		StateDir: filepath.Join(d.cfg.Paths.StateDir, dir), Members: s.m.OtherMasters, Changed: s.m.Consensus.Watch,
		Peers: storePeers{s.m}, From: peer.FromContext, Logger: d.log, Registerer: d.reg,
	}
}

// storePeers implements replica.Peers.
type storePeers struct{ m *member }

func (p storePeers) Call(ctx context.Context, to node.ID, path string, body []byte, limit int64) ([]byte, error) {
	return p.m.Call(ctx, http.MethodPost, to, path, body, limit)
}
