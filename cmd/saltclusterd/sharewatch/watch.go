package sharewatch

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/fsync/share"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/health"
)

const (
	// pathTimeout is how long a question about a path may take before the path counts as one on a share that hangs.
	pathTimeout = 5 * time.Second
	// closeTimeout is how long a part may take to close before ClosePart asks whether the share hangs.
	closeTimeout = 3 * time.Second
)

// Config is what a Watch needs.
type Config struct {
	Self   node.ID
	Shared bool   // the masters share a file system; else only FollowOthers and Check have work
	PKIDir string // of the master; on the share

	// Directories that must not be on the share: StateDir is this node's, the others are the master's.
	StateDir, SockDir, CacheDir string

	Others     func() []node.ID // the other members that have a master
	Client     peerrpc.Client
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Watch watches the share. The zero Watch is one without a share.
type Watch struct {
	c         Config
	share     *share.Share           // nil: the nodes share no file system
	misplaced atomic.Pointer[string] // what is on the share and must not be
}

// New returns a Watch that is not open yet.
func New(c Config) (*Watch, error) {
	w := &Watch{c: c}
	if !c.Shared {
		return w, nil
	}
	var err error
	w.share, err = share.New(share.Config{
		Dir: c.PKIDir, Self: c.Self, Peers: peers{c.Others, c.Client}, Logger: c.Logger, Registerer: c.Registerer,
	})
	return w, err
}

// Open starts the watch.
func (w *Watch) Open(ctx context.Context) error {
	if w.share == nil {
		return nil
	}
	return w.share.Open(ctx)
}

// Close ends the watch.
func (w *Watch) Close() error {
	if w.share == nil {
		return nil
	}
	return w.share.Close()
}

// Shared says whether there is a share.
func (w *Watch) Shared() bool { return w.share != nil }

// Hung returns why the share does not answer, and since when; empty when it answers or there is none.
func (w *Watch) Hung() (reason string, since time.Time) {
	if w.share == nil {
		return "", time.Time{}
	}
	st := w.share.State()
	if st.Condition != share.Hung {
		return "", time.Time{}
	}
	return st.Reason, st.Since
}

// Hangs says whether there is a share that does not answer.
func (w *Watch) Hangs() bool {
	reason, _ := w.Hung()
	return reason != ""
}

// OnShare says whether a path is on the file system of dir, a directory on the share; own is a directory on this host's
// own disk. It returns true when the file system does not answer.
func OnShare(dir, own, path string) bool {
	answer := make(chan bool, 1)
	go func() { answer <- share.Contains(dir, own, path) }() // ends when the disk answers
	select {
	case yes := <-answer:
		return yes
	case <-time.After(pathTimeout):
		return true
	}
}

// ClosePart closes a part. One that waits for a share that hangs is left behind, because nothing can end it and this
// process must end.
func (w *Watch) ClosePart(part io.Closer) error {
	if w.share == nil {
		return part.Close()
	}
	done := make(chan error, 1)
	go func() { done <- part.Close() }()
	for {
		select {
		case err := <-done:
			return err
		case <-time.After(closeTimeout):
		}
		if w.Hangs() {
			w.c.Logger.Error("abandoned, because it waits for the shared file system", "path", w.c.PKIDir)
			return nil
		}
	}
}

// FindMisplaced checks that nothing is on the share that belongs to one node alone.
func (w *Watch) FindMisplaced() {
	if w.share == nil {
		return
	}
	for _, dir := range []struct{ option, path, reason string }{
		{"state_dir", w.c.StateDir, "two nodes must not write there"},
		{"sock_dir", w.c.SockDir, "two masters must not have their sockets there"},
		{
			"cachedir", w.c.CacheDir,
			"the salt command works only on the master that was started last, because each one replaces .root_key",
		},
	} {
		if OnShare(w.c.PKIDir, w.c.StateDir, dir.path) {
			reason := dir.option + " is on the share: " + dir.reason
			w.misplaced.Store(&reason)
			w.c.Logger.Warn("shared file system", "path", dir.path, "reason", reason)
			return
		}
	}
}

// Check is the health check of the file system that all masters share.
func (w *Watch) Check() health.Result {
	if w.share == nil {
		return w.checkIsolated()
	}
	st := w.share.State()
	hint := "check the mount that " + w.c.PKIDir + " is on (mount, df, dmesg)"
	switch st.Condition {
	case share.Good:
		if reason := w.misplaced.Load(); reason != nil {
			return health.Result{Level: health.Warn, Reason: *reason, Hint: "move it to this host's own disk"}
		}
		if len(st.Apart) > 0 {
			return health.Result{
				Level: health.Warn, Reason: fmt.Sprintf("%s shares its file system, %s has its own", w.c.Self, st.Apart[0]),
				Hint: "saltclusterctl migrate --all-nodes continues with the rest; " +
					"or set cluster_isolated_filesystem to the same value on every node",
			}
		}
		return health.Result{Level: health.OK}
	case share.Different:
		hint = "compare on both nodes: findmnt -T " + w.c.PKIDir + "; and the option cluster_isolated_filesystem"
	}
	return health.Result{Level: health.Fail, Reason: st.Reason, Hint: hint}
}

// Path is where a node tells others what it has written to the share; the answer is empty when it shares nothing.
const Path = "/v1/share"

const maxToken = 1 << 8

// Handle routes what members ask.
func (w *Watch) Handle(mux *peerrpc.Mux) { mux.Handle("GET "+Path, http.HandlerFunc(w.serveToken)) }

func (w *Watch) serveToken(rw http.ResponseWriter, _ *http.Request) {
	if w.share == nil {
		return // nothing is shared
	}
	token := w.share.Token()
	if token == "" {
		http.Error(rw, "nothing has been written to the share yet", http.StatusServiceUnavailable)
		return
	}
	_, _ = rw.Write([]byte(token))
}

// peers implements share.Peers.
type peers struct {
	others func() []node.ID
	client peerrpc.Client
}

// Members implements share.Peers.
func (p peers) Members() []node.ID { return p.others() }

// Token implements share.Peers.
func (p peers) Token(ctx context.Context, id node.ID) (string, error) {
	body, err := p.client.Do(ctx, http.MethodGet, id, Path, nil, maxToken)
	if err == nil && len(body) == 0 {
		err = share.ErrIsolated
	}
	return string(body), err
}
