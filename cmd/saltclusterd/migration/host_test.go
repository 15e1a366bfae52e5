package migration

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/fsync/unshare"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster"
)

// writeFile writes a file of a test.
func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), mode))
}

// newSharedHost returns a host whose master has its keys, roots and jobs on a share.
func newSharedHost(t *testing.T) (h *Host, top string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, dir := range []string{
		"share/pki/minions", "share/jobs", "share/srv/salt", "cache", "etc/salt/master.d", "state",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(top, dir), 0o755))
	}
	require.NoError(t, os.Symlink(top+"/share/jobs", top+"/cache/jobs"))
	writeFile(t, top+"/share/pki/minions/web1", "key", 0o644)
	writeFile(t, top+"/etc/salt/master", fmt.Sprintf("root_dir: %[1]s\npki_dir: %[1]s/share/pki\ncachedir: %[1]s/cache\n"+
		"file_roots: {base: [%[1]s/share/srv/salt, %[1]s/srv/own]}\nextension_modules: %[1]s/share/ext\n", top), 0o644)
	writeFile(t, top+"/etc/salt/saltclusterd", fmt.Sprintf("id: m1\nstate_dir: %[1]s/state\nrun_dir: %[1]s/run\n"+
		"salt_config: %[1]s/etc/salt/master\ncluster_isolated_filesystem: False\n", top), 0o600)
	return readHost(t, top), top
}

// readHost reads the configuration of a host as a new process does.
func readHost(t *testing.T, top string) *Host {
	t.Helper()
	cfg, err := config.Read(top + "/etc/salt/saltclusterd")
	require.NoError(t, err)
	master, err := localmaster.LoadConfig(cfg.Salt.Config, localmaster.Version{Major: 3007, Minor: 15, Text: "3007.15"})
	require.NoError(t, err)
	return New(Config{
		Node: "m1", Shared: !cfg.Cluster.IsolatedFilesystem, Options: cfg,
		Master: func() *localmaster.Config { return master }, Logger: slog.New(slog.DiscardHandler),
	})
}

func TestHost_Plan(t *testing.T) {
	h, top := newSharedHost(t)
	p := h.makePlan("")
	if len(p.Refused) > 0 || len(p.Trees) != 3 || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "extension_modules") {
		t.Fatalf("%+v", p)
	}
	sizes := make([]unshare.Size, len(p.Trees))
	steps := strings.Join(h.describePlan(p, "", sizes), "\n")
	for _, want := range []string{
		top + "/var/lib/salt-master/pki", top + "/var/lib/salt-master/file_roots/base/0",
		top + "/etc/salt/master.d/" + masterDropIn, top + "/etc/salt/saltclusterd.d/" + ownDropIn,
		"cluster_isolated_filesystem: True", top + "/cache/jobs", restartByHand,
	} {
		if !strings.Contains(steps, want) {
			t.Errorf("nothing about %s in\n%s", want, steps)
		}
	}
}

// A new process has what configure has done, and one that starts in the middle of it undoes it.
func TestHost_ConfigureAndRepair(t *testing.T) {
	h, top := newSharedHost(t)
	p := h.makePlan("")
	if _, err := h.copyTrees(t.Context(), p, unshare.CopyOptions{Settle: true}, p.Trees); err != nil {
		t.Fatal(err)
	}
	if m := h.findMissing(p, false); !m.master || !m.own {
		t.Errorf("nothing to do: %+v", m)
	}
	switching := func() {
		t.Helper()
		require.NoError(t, h.changeState(func(st *unshare.State) { st.Stage, st.Plan = unshare.Switching, &p }))
		require.NoError(t, h.configure(t.Context(), p))
	}
	switching()
	after := readHost(t, top)
	if want := top + "/var/lib/salt-master/pki"; after.c.Master().PkiDir != want || after.c.Shared {
		t.Errorf("pki_dir %s, shares %t", after.c.Master().PkiDir, after.c.Shared)
	}
	want := []string{top + "/var/lib/salt-master/file_roots/base/0", top + "/srv/own"}
	if got := after.c.Master().Roots("file_roots")["base"]; !slices.Equal(got, want) {
		t.Errorf("file_roots %v", got)
	}
	if info, err := os.Lstat(top + "/cache/jobs"); err != nil || !info.IsDir() {
		t.Error("jobs is still a link", err)
	}
	if err := after.Repair(); err != nil || after.State().Stage != unshare.Switching {
		t.Error("a switch that is complete was undone", err)
	}

	// Cut off before the last file was written.
	require.NoError(t, os.Remove(top+"/etc/salt/saltclusterd.d/"+ownDropIn))
	cut := readHost(t, top)
	require.NoError(t, cut.Repair())
	again := readHost(t, top)
	if again.c.Master().PkiDir != top+"/share/pki" || !again.c.Shared || again.State().Stage != unshare.Copied {
		t.Errorf("pki_dir %s, shares %t, %+v", again.c.Master().PkiDir, again.c.Shared, again.State())
	}
	if text, err := os.Readlink(top + "/cache/jobs"); err != nil || text != top+"/share/jobs" {
		t.Error(text, err)
	}
	if m := again.findMissing(p, true); m.master || m.own {
		t.Errorf("not undone: %+v", m)
	}

	// And back again, after the old link was forgotten.
	h = again
	switching()
	for _, tree := range p.Trees {
		if tree.Link != "" {
			require.NoError(t, unshare.Forget(tree))
		}
	}
	require.NoError(t, h.unconfigure(t.Context(), h.State()))
	if back := readHost(t, top); back.c.Master().PkiDir != top+"/share/pki" || !back.c.Shared {
		t.Error(back.c.Master().PkiDir, back.c.Shared)
	}
}

// Where saltclusterd may not write, the operator is asked to write, and the effect counts.
func TestHost_ConfigureByHand(t *testing.T) {
	h, top := newSharedHost(t)
	p := h.makePlan("")
	if _, err := h.copyTrees(t.Context(), p, unshare.CopyOptions{Settle: true}, p.Trees); err != nil {
		t.Fatal(err)
	}
	// A directory in the way is what root cannot write to either.
	require.NoError(t, os.MkdirAll(top+"/etc/salt/master.d/"+masterDropIn+"/x", 0o755))
	done := make(chan error, 1)
	go func() { done <- h.configure(t.Context(), p) }()
	var text string
	for end := time.Now().Add(30 * time.Second); text == ""; time.Sleep(5 * time.Millisecond) {
		if n := h.describe(); n.ByHand != nil {
			text = strings.Join(n.ByHand.Commands, "\n")
		}
		if time.Now().After(end) {
			t.Fatal("the operator is not asked")
		}
	}
	_, body, _ := strings.Cut(text, "<<'END'\n")
	body, _, ok := strings.Cut(body, "END")
	if !ok || !strings.Contains(body, "pki_dir: "+top+"/var/lib/salt-master/pki") {
		t.Fatalf("%q", text)
	}
	writeFile(t, top+"/etc/salt/master.d/zzz-by-hand.conf", body, 0o644)
	require.NoError(t, os.RemoveAll(top+"/etc/salt/master.d/"+masterDropIn))
	check.NoError(t, <-done)
	if n := h.describe(); n.ByHand != nil {
		t.Error("still asked for")
	}
}
