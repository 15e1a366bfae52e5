package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"saltclusterd/fsync/roots"
	"saltclusterd/sidecar/adminapi"
)

// The founder gives its roots to all, however much longer it reads them than a joiner that comes at once.
func TestFoundersRootsAreFirst(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir()}
	for i, dir := range dirs {
		put(t, filepath.Join(dir, "srv/salt/top.sls"), fmt.Sprint("of ", i))
		put(t, filepath.Join(dir, "master.d/roots.conf"), "file_roots: {base: ["+dir+"/srv/salt]}\npillar_roots: {}\n")
	}
	big := filepath.Join(dirs[0], "srv/salt/big")
	put(t, big, "")
	if err := os.Truncate(big, 300<<20); err != nil { // zeros take no room, and as long to read as others
		t.Fatal(err)
	}
	nodes := []*testNode{startNode(t, "a", dirs[0]), startNode(t, "b", dirs[1])}
	if _, err := nodes[0].Bootstrap(t.Context(), adminapi.BootstrapRequest{}, quiet); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a is a member", func() error {
		if nodes[0].current() == nil {
			return os.ErrNotExist
		}
		return nil
	})
	if _, err := nodes[1].Join(t.Context(), adminapi.JoinRequest{Peer: nodes[0].addr, Wait: true, Timeout: time.Minute}, quiet); err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		eventually(t, "the founder's roots in "+dir, func() error {
			got, err := os.ReadFile(filepath.Join(dir, "srv/salt/top.sls"))
			if err == nil && string(got) != "of 0" {
				err = fmt.Errorf("top.sls is %s", got)
			}
			return err
		})
	}
	if c := nodes[0].current().svc.trees.Conflicts(); len(c) > 0 {
		t.Errorf("%d conflicts on the founder, first %+v", len(c), c[0])
	}
}

func TestFirstRootsLack(t *testing.T) {
	looked := time.Now()
	full := []roots.SlotStatus{{Files: 0}, {Files: 3}}
	closed, gone := []roots.SlotStatus{{Files: 3, Unavailable: "no"}}, []roots.SlotStatus{{Files: 3, Unavailable: "no", Missing: true}}
	closed[0].Name = roots.SlotName{Kind: "file", Env: "base"}
	for name, c := range map[string]struct {
		st   roots.Status
		lack string // what the joiner hears
	}{
		"a directory cannot be read": {roots.Status{Mode: roots.ModeAuto, LastScan: looked, Slots: closed}, "file:base:0: no"},
		"a directory is not there":   {roots.Status{Mode: roots.ModeAuto, LastScan: looked, Slots: gone}, ""},
		"not looked at yet":          {roots.Status{Mode: roots.ModeAuto}, "they are being read"},
		"nothing is there":           {roots.Status{Mode: roots.ModeAuto, LastScan: looked, Slots: full[:1]}, ""},
		"not proposed yet":           {roots.Status{Mode: roots.ModeAuto, LastScan: looked, Slots: full}, "3 files are read"},
		"a file never rests":         {roots.Status{Mode: roots.ModeAuto, LastScan: looked, Slots: full, Problems: []string{"x.log changes"}}, "3 files are read; x.log changes"},
		"cannot be read":             {roots.Status{Mode: roots.ModeAuto, Problems: []string{"x"}}, "x"},
		"there is a revision":        {roots.Status{Mode: roots.ModeAuto, LastScan: looked, Slots: full, Head: 1}, ""},
		"an operator's turn":         {roots.Status{Mode: roots.ModeManual, LastScan: looked, Slots: full}, ""},
	} {
		if got := firstRootsLack(c.st); got != c.lack {
			t.Errorf("%s: %q, want %q", name, got, c.lack)
		}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, path, text, 0o644)
}
