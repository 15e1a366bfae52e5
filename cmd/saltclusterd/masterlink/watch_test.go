package masterlink

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/localmaster/configtest"
)

// fakeBus is a bus that takes events after some refusals.
type fakeBus struct{ refusals int }

func (*fakeBus) Serves(localmaster.Version)  {}
func (*fakeBus) AwaitActors(context.Context) {}

func (b *fakeBus) Flush(context.Context) error {
	if b.refusals--; b.refusals >= 0 {
		return errors.New("not yet")
	}
	return nil
}

// Another key store is taken over after it was seen twice, and again after a failure.
func TestWatch_FollowKeyStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master")
	w := NewWatch(WatchConfig{Master: configtest.Write(t, path, 3008, ""), Logger: slog.New(slog.DiscardHandler)})
	upgrades := 0
	w.c.Upgrade = func(context.Context, admin.Progress) error {
		if upgrades++; upgrades == 1 {
			return errors.New("failed")
		}
		return nil
	}
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.FollowKeyStore(t.Context())
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		if upgrades != 0 {
			t.Fatal("upgraded for the same store")
		}
		require.NoError(t, os.WriteFile(path, []byte("keys.cache_driver: mmap_key\n"), 0o600))
		at := time.Now()
		<-ended
		if took := time.Since(at); upgrades != 2 || took < configEvery+upgradeRetry || took > time.Minute {
			t.Errorf("%d upgrades in %s", upgrades, took)
		}
	})
}

// An upgrade that fails is retried, until the master is started again, perhaps with another version.
func TestWatch_UpgradeFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upgrades := 0
		w := NewWatch(WatchConfig{Logger: slog.New(slog.DiscardHandler)})
		w.c.Upgrade = func(context.Context, admin.Progress) error {
			if upgrades++; upgrades == 3 {
				return nil
			}
			return errors.New("failed")
		}
		at := time.Now()
		if !w.upgradeFor(t.Context(), localmaster.Version{Major: 3008}) || upgrades != 3 || time.Since(at) != 3*upgradeRetry {
			t.Errorf("%d upgrades in %s", upgrades, time.Since(at))
		}
		upgrades = 0
		time.AfterFunc(time.Second, w.NotifyStarted)
		if w.upgradeFor(t.Context(), localmaster.Version{Major: 3008}) || upgrades != 1 {
			t.Errorf("%d upgrades for a master that was started again", upgrades)
		}
		select {
		case <-w.started:
		default:
			t.Error("the start is not noted for the next question")
		}
		if w.upgradeFor(t.Context(), localmaster.Version{Major: 3005}) || upgrades != 1 {
			t.Error("upgraded for a version that is not supported")
		}
	})
}

// A process ends only after the bus has taken the events that waited.
func TestWatch_FlushEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unfired := uint64(2)
		w := NewWatch(WatchConfig{Bus: &fakeBus{refusals: 3}, Unfired: func() uint64 { unfired--; return unfired }})
		at := time.Now()
		w.flushEvents(t.Context())
		check.Equal(t, time.Since(at), 4*probeRetry, "it took")
		w.c.Unfired = func() uint64 { return 1 }
		at = time.Now()
		w.flushEvents(t.Context())
		check.Equal(t, time.Since(at), flushTimeout, "events that are not taken: it took")
	})
}

func TestWatch_CheckVersion(t *testing.T) {
	w := NewWatch(WatchConfig{Master: &localmaster.Config{Version: localmaster.Version{Major: 3007}}})
	check.Equal(t, w.CheckVersion(), fine)
	newer := "3008.1"
	w.newer.Store(&newer)
	if r := w.CheckVersion(); r.Level != health.Warn || r.Hint == "" {
		t.Errorf("%+v", r)
	}
}
