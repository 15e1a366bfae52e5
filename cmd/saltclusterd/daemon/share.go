package daemon

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"saltclusterd/fsync/keydir"
	"saltclusterd/fsync/share"
	"saltclusterd/fsync/unshare"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
)

// pathShare is where a node tells what it has written to the share; it tells nothing when it shares nothing.
const (
	pathShare     = "/v1/share"
	maxShareToken = 1 << 8
)

const (
	// shareAnswers is how long a question about a path on the share may take before the share counts as hung.
	shareAnswers = 5 * time.Second
	// sharePatience is how long a part may take to close before it is asked whether the share hangs.
	sharePatience = 3 * time.Second
)

// shares says whether the masters of the cluster have pki_dir and more on one file system.
func (d *Daemon) shares() bool { return !d.cfg.Cluster.IsolatedFilesystem && !d.witness() }

// onShare says whether a path is where pki_dir is, or cannot be asked for: nothing of it is to be replicated then.
func (d *Daemon) onShare(path string) bool {
	if !d.shares() {
		return false
	}
	answer := make(chan bool, 1)
	go func() { answer <- sharedPath(d.master.PkiDir, d.cfg.Paths.StateDir, path) }() // ends when the disk answers
	select {
	case yes := <-answer:
		return yes
	case <-time.After(shareAnswers):
		return true
	}
}

// sharedPath compares mounts. Where the share is no mount, which is so in tests only, what is beside pki_dir is on it.
func sharedPath(pki, own, path string) bool {
	path = existing(path)
	if apart, err := share.SameMount(existing(pki), existing(own)); err == nil && !apart {
		same, err := share.SameMount(existing(pki), path)
		return same || err != nil
	}
	root, err := filepath.EvalSymlinks(filepath.Dir(filepath.Clean(pki)))
	if err != nil {
		return true
	}
	real, err := filepath.EvalSymlinks(path)
	return err != nil || real == root || strings.HasPrefix(real, root+string(filepath.Separator))
}

// existing is path or the nearest directory above it that is there.
func existing(path string) string {
	for {
		if _, err := filepath.EvalSymlinks(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

// buildShare makes what watches the share, none when nothing is shared, and finds out whether the master has left it, too.
func (s *service) buildShare() (err error) {
	d := s.m.d
	d.migration.noteMaster()
	if !d.shares() {
		return nil
	}
	s.share, err = share.New(share.Config{
		Dir: d.master.PkiDir, Self: d.id, Peers: sharePeers{s.m}, Logger: d.log, Registerer: d.reg,
	})
	return err
}

// turns lets this node take its turn in a shared pki_dir.
func (s *service) turns() *keydir.Shared {
	if s.share == nil {
		return nil
	}
	return &keydir.Shared{Latest: s.m.cons.Barrier}
}

// hiddenID is whom this node signs in as at its master. In a shared pki_dir each node has a key of its own for that, and keeps it when
// it leaves the share: until the master is restarted it knows no other.
func (s *service) hiddenID() string {
	if s.share == nil && s.m.d.migration.state().Stage == unshare.Shared {
		return ""
	}
	return localmaster.HiddenID + "-" + string(s.m.d.id)
}

// shareHangs says whether the local master cannot work because the share does not answer.
func (s *service) shareHangs() bool { return s.share != nil && s.share.State().Condition == share.Hung }

// end closes a part. One that waits for a share that hangs is left behind: nothing can end it, and this process must go on.
func (s *service) end(p closer) error {
	if s.share == nil {
		return p.Close()
	}
	done := make(chan error, 1)
	go func() { done <- p.Close() }()
	for {
		select {
		case err := <-done:
			return err
		case <-time.After(sharePatience):
		}
		if s.shareHangs() {
			s.m.log.Error("left behind: it waits for the shared file system", "path", s.m.d.master.PkiDir)
			return nil
		}
	}
}

// lookForMisplaced sees whether anything is on the share that is one node's alone.
func (s *service) lookForMisplaced() {
	d := s.m.d
	for _, dir := range []struct{ option, path, reason string }{
		{"state_dir", d.cfg.Paths.StateDir, "two nodes must not write there"},
		{"sock_dir", d.master.SockDir, "two masters must not have their sockets there"},
		{"cachedir", d.master.CacheDir, "the salt command works only on the master that was started last, for each makes .root_key anew"},
	} {
		if d.onShare(dir.path) {
			reason := dir.option + " is on the share: " + dir.reason
			s.misplaced.Store(&reason)
			s.m.log.Warn("shared file system", "path", dir.path, "reason", reason)
			return
		}
	}
}

// sharePeers implements share.Peers.
type sharePeers struct{ m *member }

func (p sharePeers) Members() []node.ID { return p.m.otherMasters() }

func (p sharePeers) Token(ctx context.Context, id node.ID) (string, error) {
	body, err := p.m.call(ctx, http.MethodGet, id, pathShare, nil, maxShareToken)
	if err == nil && len(body) == 0 {
		err = share.ErrIsolated
	}
	return string(body), err
}

func (m *member) handleShare(w http.ResponseWriter, _ *http.Request) {
	s := m.svc.share
	if s == nil {
		return // nothing is shared
	}
	token := s.Token()
	if token == "" {
		http.Error(w, "nothing has been written to the share yet", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte(token))
}

// checkShare is about the file system that all masters share.
func (s *service) checkShare(context.Context) health.Result {
	if r, bad := s.m.d.migration.check(); bad {
		return r
	}
	if s.share == nil {
		return s.checkApart()
	}
	st := s.share.State()
	hint := "see to the mount that " + s.m.d.master.PkiDir + " is on (mount, df, dmesg)"
	switch st.Condition {
	case share.Good:
		if reason := s.misplaced.Load(); reason != nil {
			return health.Result{Level: health.Warn, Reason: *reason, Hint: "give it a place on this host's own disk"}
		}
		if len(st.Apart) > 0 {
			return health.Result{
				Level: health.Warn, Reason: fmt.Sprintf("%s shares its file system, %s has its own", s.m.d.id, st.Apart[0]),
				Hint: "saltclusterctl migrate --all goes on with the rest; else set cluster_isolated_filesystem alike on every node",
			}
		}
		return fine
	case share.Elsewhere:
		hint = "compare on both nodes: findmnt -T " + s.m.d.master.PkiDir + "; and the option cluster_isolated_filesystem"
	}
	return health.Result{Level: health.Fail, Reason: st.Reason, Hint: hint}
}
