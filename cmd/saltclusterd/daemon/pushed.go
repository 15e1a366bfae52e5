package daemon

import (
	"slices"
	"strings"

	"saltclusterd/sidecar/localmaster"
)

// minionFS is how the local master serves the files that minions have pushed (salt/fileserver/minionfs.py).
type minionFS struct {
	on    bool
	mount string // what their paths begin with
}

func minionFSOf(master *localmaster.Config) minionFS {
	backends := master.Strings("fileserver_backend")
	if !slices.Contains(backends, "minionfs") && !slices.Contains(backends, "minion") {
		return minionFS{}
	}
	mount := master.Text("minionfs_mountpoint")
	if scheme, rest, ok := strings.Cut(mount, "://"); ok && !strings.ContainsAny(scheme, ":/") {
		mount = rest
	}
	return minionFS{on: true, mount: mount}
}

// minion is whose file a path would name; empty: nobody's. The master takes as much from the path as the mount point has letters, whatever
// they are, and so does this.
func (f minionFS) minion(path string) string {
	path = strings.TrimPrefix(path, "|") // as what has a question mark in it is marked
	if !f.on || len(path) < len(f.mount) {
		return ""
	}
	id, file, _ := strings.Cut(strings.TrimLeft(path[len(f.mount):], "/"), "/")
	if file == "" {
		return ""
	}
	return id
}

// pusher tells which minion that the cluster knows has pushed the file of a path (router.View.Pusher).
func (m *member) pusher() func(path string) string {
	now := m.svc.followed.Load()
	if now == nil || !now.minionfs.on {
		return nil
	}
	return func(path string) string {
		id := now.minionfs.minion(path)
		if _, known := m.cons.View().Key(id); !known {
			return ""
		}
		return id
	}
}
