package daemon

import (
	"cmp"
	"path/filepath"

	"saltclusterd/fsync/tokens"
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
