package masterlink

import (
	"slices"
	"strings"

	"saltclusterd/sidecar/localmaster"
)

// minionFS is how the local master serves files that minions have pushed (salt/fileserver/minionfs.py).
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

// minion returns the id of the minion whose file a path names, empty if there is none. Like the master it removes as
// many letters from the path as the mount point has, whichever they are.
func (f minionFS) minion(path string) string {
	path = strings.TrimPrefix(path, "|") // Salt marks paths with a question mark so
	if !f.on || len(path) < len(f.mount) {
		return ""
	}
	id, file, _ := strings.Cut(strings.TrimLeft(path[len(f.mount):], "/"), "/")
	if file == "" {
		return ""
	}
	return id
}

// PushedBy returns the id of the minion that has pushed the file of a path; empty: none has.
func (o *Options) PushedBy(path string) string { return o.minionfs.minion(path) }

// ServesPushed says whether the master serves files that minions have pushed.
func (o *Options) ServesPushed() bool { return o.minionfs.on }
