package lab_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// diskHost is a host with a small disk, and another one whose processes see the mount table, too.
func diskHost(t *testing.T) *lab.Host {
	t.Helper()
	l := newLab(t, false)
	h := host(t, l, "m1")
	err := h.UseDisk(t.Context(), 16)
	if errors.Is(err, lab.ErrNoDisk) {
		t.Skip(err)
	}
	labtest.Must(t, err)
	other := host(t, l, "m2").NewProcess(lab.Spec{Name: "idle", Argv: []string{"/bin/sleep", "100"}})
	labtest.Must(t, other.Start(t.Context()))
	return h
}

// A power failure loses what was not synced.
func TestPowerOff_LosesUnsynced(t *testing.T) {
	h := diskHost(t)
	p := h.NewProcess(lab.Spec{
		Name: "writer", Argv: []string{"/bin/sh", "-c",
			"echo kept > kept; sync kept .; echo lost > lost; echo lost >> kept; touch done; sleep 100"},
	})
	labtest.Must(t, p.Start(t.Context()))
	labtest.Must(t, lab.Eventually(t.Context(), 10*time.Second, "the writer", func(context.Context) error {
		_, err := os.Stat(filepath.Join(h.Dir(), "done"))
		return err
	}))
	labtest.Must(t, h.PowerOff(t.Context()))
	if p.Running() {
		t.Error("still running")
	}
	labtest.Must(t, h.PowerOn(t.Context()))
	if b, err := os.ReadFile(filepath.Join(h.Dir(), "kept")); err != nil || string(b) != "kept\n" {
		t.Errorf("kept is %q, %v", b, err)
	}
	if b, err := os.ReadFile(filepath.Join(h.Dir(), "lost")); err == nil && len(b) > 0 {
		t.Errorf("lost is still there: %q", b)
	}
}

func TestFullDisk(t *testing.T) {
	h := diskHost(t)
	labtest.Must(t, h.FillDisk())
	write := func() error { return os.WriteFile(filepath.Join(h.Dir(), "new"), make([]byte, 1<<16), 0o600) }
	if err := write(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write to a full disk: %v", err)
	}
	labtest.Must(t, h.FreeDisk())
	labtest.Must(t, write())
}

func TestBreakDisk_RepairedAtPowerOn(t *testing.T) {
	h := diskHost(t)
	f, err := os.Create(filepath.Join(h.Dir(), "open"))
	labtest.Must(t, err)
	labtest.Must(t, h.SyncDisk())
	labtest.Must(t, h.BreakDisk())
	labtest.Must(t, lab.Eventually(t.Context(), 10*time.Second, "a refusal", func(context.Context) error {
		if err := os.WriteFile(filepath.Join(h.Dir(), "new"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
			return errors.New("still writable")
		}
		return nil
	}))
	f.Close()
	labtest.Must(t, h.PowerOff(t.Context()))
	labtest.Must(t, h.PowerOn(t.Context()))
	labtest.Must(t, os.WriteFile(filepath.Join(h.Dir(), "new"), nil, 0o600))
}
