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

// onShare says whether a path is on the file system of a shared pki_dir, or the share does not answer. Such a path is
// not replicated.
func (d *Daemon) onShare(path string) bool {
	return d.shares() && sharewatch.OnShare(d.master.PkiDir, d.cfg.Paths.StateDir, path)
}

// newShareWatch returns the watch over the share, or over the others' on a node that shares nothing.
func (s *service) newShareWatch() (*sharewatch.Watch, error) {
	d := s.m.d
	return sharewatch.New(sharewatch.Config{
		Self: d.id, Shared: d.shares(), PKIDir: d.master.PkiDir,
		StateDir: d.cfg.Paths.StateDir, SockDir: d.master.SockDir, CacheDir: d.master.CacheDir,
		Others: s.m.OtherMasters, Client: s.m.Client(), Logger: d.log, Registerer: d.reg,
	})
}

// turns returns how this node takes its turn in a shared pki_dir; nil: pki_dir is its own.
func (s *service) turns() *keydir.Shared {
	if !s.share.Shared() {
		return nil
	}
	return &keydir.Shared{Latest: s.m.Consensus.Barrier}
}

// hiddenID returns the id with which this node signs in at its master. In a shared pki_dir each node has a key of its
// own for that. It keeps the key when it leaves the share, because the master has no other until it is restarted.
func (s *service) hiddenID() string {
	if !s.share.Shared() && s.m.d.migration.State().Stage == unshare.Shared {
		return ""
	}
	return localmaster.HiddenID + "-" + string(s.m.d.id)
}

// checkShare is the health check of the file system that all masters share, and of leaving it.
func (s *service) checkShare(context.Context) health.Result {
	if r, bad := s.m.d.migration.Check(); bad {
		return r
	}
	return s.share.Check()
}
