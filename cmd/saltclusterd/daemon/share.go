package daemon

import (
	"context"

	"saltclusterd/cmd/saltclusterd/sharewatch"
	"saltclusterd/fsync/keydir"
	"saltclusterd/fsync/unshare"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
)

// shares says whether the masters of the cluster have pki_dir and more on one file system.
func (d *Daemon) shares() bool { return !d.cfg.Cluster.IsolatedFilesystem && !d.witness() }

// onShare says whether a path is where pki_dir is, or cannot be asked for: nothing of it is to be replicated then.
func (d *Daemon) onShare(path string) bool {
	return d.shares() && sharewatch.OnShare(d.master.PkiDir, d.cfg.Paths.StateDir, path)
}

// newShareWatch makes what watches the share.
func (s *service) newShareWatch() (*sharewatch.Watch, error) {
	d := s.m.d
	return sharewatch.New(sharewatch.Config{
		Self: d.id, Shared: d.shares(), PKIDir: d.master.PkiDir,
		StateDir: d.cfg.Paths.StateDir, SockDir: d.master.SockDir, CacheDir: d.master.CacheDir,
		Others: s.m.otherMasters, Client: s.m.client(), Logger: d.log, Registerer: d.reg,
	})
}

// turns lets this node take its turn in a shared pki_dir.
func (s *service) turns() *keydir.Shared {
	if !s.share.Shared() {
		return nil
	}
	return &keydir.Shared{Latest: s.m.cons.Barrier}
}

// hiddenID is whom this node signs in as at its master. In a shared pki_dir each node has a key of its own for that, and keeps it when
// it leaves the share: until the master is restarted it knows no other.
func (s *service) hiddenID() string {
	if !s.share.Shared() && s.m.d.migration.state().Stage == unshare.Shared {
		return ""
	}
	return localmaster.HiddenID + "-" + string(s.m.d.id)
}

// checkShare is about the file system that all masters share.
func (s *service) checkShare(context.Context) health.Result {
	if r, bad := s.m.d.migration.check(); bad {
		return r
	}
	return s.share.Check()
}
