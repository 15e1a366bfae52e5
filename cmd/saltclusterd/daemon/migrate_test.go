package daemon

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/fsync/unshare"
	"saltclusterd/sidecar/localmaster"
)

// sharedHost is a daemon that does not run, beside a master whose keys, roots and jobs are on a share.
func sharedHost(t *testing.T) (d *Daemon, top string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"share/pki/minions", "share/jobs", "share/srv/salt", "cache", "etc/salt/master.d", "state"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(top+"/share/jobs", top+"/cache/jobs"); err != nil {
		t.Fatal(err)
	}
	write(t, top+"/share/pki/minions/web1", "key", 0o644)
	write(t, top+"/etc/salt/master", fmt.Sprintf("root_dir: %[1]s\npki_dir: %[1]s/share/pki\ncachedir: %[1]s/cache\n"+
		"file_roots: {base: [%[1]s/share/srv/salt, %[1]s/srv/own]}\nextension_modules: %[1]s/share/ext\n", top), 0o644)
	write(t, top+"/etc/salt/saltclusterd", fmt.Sprintf("id: m1\nstate_dir: %[1]s/state\nrun_dir: %[1]s/run\nsalt_config: %[1]s/etc/salt/master\n"+
		"cluster_isolated_filesystem: False\n", top), 0o600)
	return readHost(t, top), top
}

// readHost reads the configuration of a host as a new process does.
func readHost(t *testing.T, top string) *Daemon {
	t.Helper()
	cfg, err := config.Read(top + "/etc/salt/saltclusterd")
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(cfg, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if d.master, err = localmaster.LoadConfig(cfg.Salt.Config, localmaster.Version{Major: 3007, Minor: 15, Text: "3007.15"}); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPlanOfAHost(t *testing.T) {
	d, top := sharedHost(t)
	p := d.migration.plan("")
	if len(p.Refused) > 0 || len(p.Trees) != 3 || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "extension_modules") {
		t.Fatalf("%+v", p)
	}
	sizes := make([]unshare.Size, len(p.Trees))
	steps := strings.Join(d.migration.planSteps(p, "", sizes), "\n")
	for _, want := range []string{
		top + "/var/lib/salt-master/pki", top + "/var/lib/salt-master/file_roots/base/0", top + "/etc/salt/master.d/" + masterDropIn,
		top + "/etc/salt/saltclusterd.d/" + ownDropIn, "cluster_isolated_filesystem: True", top + "/cache/jobs", restartByHand,
	} {
		if !strings.Contains(steps, want) {
			t.Errorf("nothing about %s in\n%s", want, steps)
		}
	}
}

// What configure does a new process has, and a process that begins anew in the middle undoes it.
func TestConfigureAndRepair(t *testing.T) {
	d, top := sharedHost(t)
	g := d.migration
	p := g.plan("")
	if _, err := g.pass(t.Context(), p, true, nil); err != nil {
		t.Fatal(err)
	}
	if master, own, _ := g.lacking(p, false); !master || !own {
		t.Error("nothing to do", master, own)
	}
	switching := func() {
		t.Helper()
		if err := g.change(func(st *unshare.State) { st.Stage, st.Plan = unshare.Switching, &p }); err != nil {
			t.Fatal(err)
		}
		if err := g.configure(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	switching()
	after := readHost(t, top)
	if want := top + "/var/lib/salt-master/pki"; after.master.PkiDir != want || after.shares() {
		t.Errorf("pki_dir %s, shares %t", after.master.PkiDir, after.shares())
	}
	if got := after.master.Roots("file_roots")["base"]; len(got) != 2 || got[0] != top+"/var/lib/salt-master/file_roots/base/0" || got[1] != top+"/srv/own" {
		t.Errorf("file_roots %v", got)
	}
	if info, err := os.Lstat(top + "/cache/jobs"); err != nil || !info.IsDir() {
		t.Error("jobs is still a link", err)
	}
	if err := after.migration.repair(); err != nil || after.migration.state().Stage != unshare.Switching {
		t.Error("a switch that is complete was undone", err)
	}

	// Cut off before the last file was written.
	if err := os.Remove(top + "/etc/salt/saltclusterd.d/" + ownDropIn); err != nil {
		t.Fatal(err)
	}
	cut := readHost(t, top)
	if err := cut.migration.repair(); err != nil {
		t.Fatal(err)
	}
	again := readHost(t, top)
	if again.master.PkiDir != top+"/share/pki" || !again.shares() || again.migration.state().Stage != unshare.Copied {
		t.Errorf("pki_dir %s, shares %t, %+v", again.master.PkiDir, again.shares(), again.migration.state())
	}
	if text, err := os.Readlink(top + "/cache/jobs"); err != nil || text != top+"/share/jobs" {
		t.Error(text, err)
	}
	if master, own, _ := again.migration.lacking(p, true); master || own {
		t.Error("not undone", master, own)
	}

	// And back again, after the old link was forgotten.
	g = again.migration
	switching()
	for _, tree := range p.Trees {
		if tree.Link != "" {
			if err := unshare.Forget(tree); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := g.unconfigure(t.Context(), g.state()); err != nil {
		t.Fatal(err)
	}
	if back := readHost(t, top); back.master.PkiDir != top+"/share/pki" || !back.shares() {
		t.Error(back.master.PkiDir, back.shares())
	}
}

// Where saltclusterd may not write, a person is told what to write, and the effect counts.
func TestConfigureByHand(t *testing.T) {
	d, top := sharedHost(t)
	g := d.migration
	p := g.plan("")
	if _, err := g.pass(t.Context(), p, true, nil); err != nil {
		t.Fatal(err)
	}
	// A directory in the way is what root cannot write to either.
	if err := os.MkdirAll(top+"/etc/salt/master.d/"+masterDropIn+"/x", 0o755); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- g.configure(t.Context(), p) }()
	var text string
	for end := time.Now().Add(30 * time.Second); text == ""; time.Sleep(5 * time.Millisecond) {
		if n := g.describe(true); n.ByHand != nil {
			text = strings.Join(n.ByHand.Commands, "\n")
		}
		if time.Now().After(end) {
			t.Fatal("nobody is asked")
		}
	}
	_, body, _ := strings.Cut(text, "<<'END'\n")
	body, _, ok := strings.Cut(body, "END")
	if !ok || !strings.Contains(body, "pki_dir: "+top+"/var/lib/salt-master/pki") {
		t.Fatalf("%q", text)
	}
	write(t, top+"/etc/salt/master.d/zzz-by-hand.conf", body, 0o644)
	if err := os.RemoveAll(top + "/etc/salt/master.d/" + masterDropIn); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := g.describe(true); n.ByHand != nil {
		t.Error("still asked for")
	}
}
