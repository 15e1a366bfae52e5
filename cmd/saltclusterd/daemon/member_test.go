package daemon

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
)

// A membership whose service cannot be made leaves no file and no goroutine behind.
func TestNewMember_Failure(t *testing.T) {
	n := startNode(t, "m1", t.TempDir())
	if _, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	n.halt()
	record, err := n.readRecord()
	require.NoError(t, err)
	n.cfg.Events.Policy = []config.TagRule{{Tag: "a", Policy: "no such policy"}}
	n.reg.Renew()
	files, goroutines := openFiles(t), runtime.NumGoroutine()
	m, err := n.newMember(record)
	if m != nil || err == nil {
		t.Fatalf("a member with bad rules: %v", err)
	}
	eventually(t, "nothing to be left", func() error {
		if now := openFiles(t); len(now) > len(files) {
			return fmt.Errorf("these files are open: %q, before: %q", now, files)
		}
		if now := runtime.NumGoroutine(); now > goroutines {
			return fmt.Errorf("%d goroutines, %d before", now, goroutines)
		}
		return nil
	})
}

// openFiles lists what the descriptors of this process are.
func openFiles(t *testing.T) (out []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, e := range entries {
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil { // not that of the directory itself
			out = append(out, name)
		}
	}
	return out
}
