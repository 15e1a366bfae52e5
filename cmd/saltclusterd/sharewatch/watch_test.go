package sharewatch

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/health"
)

// answering is a transport to members that all give one answer.
type answering string

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	_, _ = w.WriteString(string(a))
	return w.Result(), nil
}

// newConfig returns the configuration of node m1 with its pki_dir in share and the rest beside it.
func newConfig(t *testing.T, shared bool, answer string) Config {
	t.Helper()
	top := t.TempDir()
	for _, dir := range []string{"share/pki", "share/cache", "state", "run", "cache"} {
		require.NoError(t, os.MkdirAll(filepath.Join(top, dir), 0o755))
	}
	return Config{
		Self: "m1", Shared: shared, PKIDir: filepath.Join(top, "share/pki"), StateDir: filepath.Join(top, "state"),
		SockDir: filepath.Join(top, "run"), CacheDir: filepath.Join(top, "cache"),
		Others: func() []node.ID { return []node.ID{"m2"} },
		Client: peerrpc.Client{HTTP: &http.Client{Transport: answering(answer)}}, Logger: slog.New(slog.DiscardHandler),
	}
}

func newWatch(t *testing.T, c Config) *Watch {
	t.Helper()
	w, err := New(c)
	require.NoError(t, err)
	return w
}

func TestFindMisplaced(t *testing.T) {
	c := newConfig(t, true, "")
	w := newWatch(t, c)
	w.FindMisplaced()
	if reason := w.misplaced.Load(); reason != nil {
		t.Errorf("misplaced: %s", *reason)
	}
	c.CacheDir = filepath.Join(filepath.Dir(c.PKIDir), "cache")
	w = newWatch(t, c)
	w.FindMisplaced()
	if reason := w.misplaced.Load(); reason == nil || !strings.HasPrefix(*reason, "cachedir is on the share") {
		t.Errorf("a cachedir on the share is not reported: %v", reason)
	}
	c.Shared = false
	w = newWatch(t, c)
	w.FindMisplaced()
	if r := w.Check(); r.Level != health.OK {
		t.Errorf("without a share: %+v", r)
	}
}

// A node that shares nothing fails its check when its pki_dir holds what another node says it has written to the share.
func TestFollowOthers(t *testing.T) {
	for name, test := range map[string]struct {
		written, answer string
		want            health.Level
	}{
		"same directory":       {"TOKEN", "TOKEN", health.Fail},
		"other directory":      {"TOKEN", "OTHER", health.OK},
		"others share nothing": {"TOKEN", "", health.OK},
	} {
		t.Run(name, func(t *testing.T) {
			c := newConfig(t, false, test.answer)
			if err := os.WriteFile(filepath.Join(c.PKIDir, ".saltclusterd-share.m2"), []byte(test.written), 0o600); err != nil {
				t.Fatal(err)
			}
			w := newWatch(t, c)
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					w.FollowOthers(ctx)
				}()
				synctest.Wait() // until it sleeps
				cancel()
				<-done
			})
			if r := w.Check(); r.Level != test.want {
				t.Errorf("the check says %+v", r)
			}
		})
	}
}

func TestHandle(t *testing.T) {
	for name, test := range map[string]struct {
		shared bool
		want   int
	}{
		"nothing shared": {false, http.StatusOK},
		"not open yet":   {true, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			mux := peerrpc.NewMux(func(context.Context) (node.ID, bool) { return "m2", true })
			newWatch(t, newConfig(t, test.shared, "")).Handle(mux)
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path, nil))
			if w.Code != test.want || test.want == http.StatusOK && w.Body.Len() > 0 {
				t.Errorf("answered %d %q", w.Code, w.Body)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	for _, shared := range []bool{false, true} {
		w := newWatch(t, newConfig(t, shared, ""))
		require.NoError(t, w.Open(t.Context()))
		if w.Shared() != shared || w.Hangs() {
			t.Errorf("shared %t, hangs %t", w.Shared(), w.Hangs())
		}
		closed := part(false)
		if err := w.ClosePart(&closed); err != nil || !bool(closed) {
			t.Errorf("a part is not closed: %v", err)
		}
		check.NoError(t, w.Close())
	}
}

type part bool

// Close implements io.Closer.
func (p *part) Close() error {
	*p = true
	return nil
}
