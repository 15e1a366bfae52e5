package daemon

import (
	"cmp"
	"context"
	"net/http"
	"path/filepath"

	"saltclusterd/fsync/replica"
	"saltclusterd/fsync/tokens"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
)

// newTokens makes what lets every master take the eauth tokens that one has issued.
func (s *service) newTokens() (*tokens.Store, error) {
	d := s.m.d
	owner, err := d.master.Owner()
	if err != nil {
		return nil, err
	}
	return tokens.New(tokens.Config{
		Config: s.replicated("tokens"),
		Master: tokens.Master{
			Major: d.master.Version.Major, CacheDir: d.master.CacheDir, UID: owner.UID, GID: owner.GID,
			Store:  d.master.Text("eauth_tokens"),
			Driver: cmp.Or(d.master.Text("eauth_tokens.cache_driver"), d.master.Text("cache")),
			Shared: d.leftToShare(filepath.Join(d.master.CacheDir, "tokens")),
		},
	})
}

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
