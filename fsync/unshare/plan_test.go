package unshare

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/paths"
)

// site is a host with a directory that counts as the share.
type site struct{ top, share, cache string }

func newSite(t *testing.T) site {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	s := site{top: top, share: filepath.Join(top, "share"), cache: filepath.Join(top, "cache")}
	for _, dir := range []string{"share/pki", "share/jobs", "share/srv/salt/dev", "share/srv/pillar", "cache/sessions",
		"own/srv", "etc", "run"} {
		require.NoError(t, os.MkdirAll(filepath.Join(top, dir), 0o755))
	}
	link(t, filepath.Join(s.share, "jobs"), filepath.Join(s.cache, "jobs"))
	return s
}

func link(t *testing.T, text, path string) {
	t.Helper()
	require.NoError(t, os.Symlink(text, path))
}

func (s site) on(path string) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return paths.Within(path, s.share)
}

func (s site) master() Master {
	return Master{
		ConfigFile: s.top + "/etc/master", PkiDir: s.share + "/pki", CacheDir: s.cache,
		Roots: map[string]map[string][]string{
			"file_roots": {"base": {s.share + "/srv/salt", s.top + "/own/srv"},
				"dev": {s.share + "/srv/salt/dev", s.share + "/nowhere"}},
			"pillar_roots": {"base": {s.share + "/srv/pillar"}},
		},
		SetBy:   func(string) string { return s.top + "/etc/master" },
		Others:  map[string]string{"extension_modules": s.share + "/ext", "autosign_file": s.top + "/etc/autosign"},
		OwnDirs: map[string]string{"sock_dir": s.top + "/run"},
	}
}

func (s site) plan(change func(*Master)) Plan {
	m := s.master()
	if change != nil {
		change(&m)
	}
	return Make(m, s.top+"/local", s.on)
}

func TestPlan(t *testing.T) {
	s := newSite(t)
	p := s.plan(nil)
	if len(p.Refused) > 0 {
		t.Fatal(p.Refused)
	}
	local := s.top + "/local/"
	want := map[string]Tree{
		"pki":                 {From: s.share + "/pki", To: local + "pki"},
		"file_roots base 0":   {From: s.share + "/srv/salt", To: local + "file_roots/base/0"},
		"pillar_roots base 0": {From: s.share + "/srv/pillar", To: local + "pillar_roots/base/0"},
		"jobs": {From: s.share + "/jobs", To: s.cache + "/.saltclusterd-isolated.jobs",
			Link: s.cache + "/jobs"},
	}
	have := map[string]Tree{}
	for _, tree := range p.Trees {
		name := tree.Name
		tree.Name = ""
		have[name] = tree
	}
	if !maps.Equal(have, want) {
		t.Errorf("trees %v", have)
	}
	if p.Options["pki_dir"] != local+"pki" {
		t.Errorf("options %v", p.Options)
	}
	roots := p.Options["file_roots"].(map[string]any)
	if got := roots["base"].([]any); got[0] != local+"file_roots/base/0" || got[1] != s.top+"/own/srv" {
		t.Errorf("base: %v", got)
	}
	if got := roots["dev"].([]any); got[0] != local+"file_roots/base/0/dev" || got[1] != s.share+"/nowhere" {
		t.Errorf("dev, which is inside of base: %v", got)
	}
	if len(p.Notes) != 2 || len(p.Edits) != 0 {
		t.Errorf("notes %q, edits %v", p.Notes, p.Edits)
	}
}

// What a file of master.d says Salt merges with a drop-in: a person has to change it.
func TestPlan_RootsInMasterD(t *testing.T) {
	s := newSite(t)
	p := s.plan(func(m *Master) {
		m.SetBy = func(option string) string {
			if option == "file_roots" {
				return s.top + "/etc/master.d/roots.conf"
			}
			return ""
		}
	})
	if _, ok := p.Options["file_roots"]; ok || len(p.Edits) != 2 || p.Edits[0].From != s.share+"/srv/salt" {
		t.Errorf("%+v", p)
	}
}

func TestPlanRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(site, *Master)
		say    string
	}{
		"cachedir": {func(s site, m *Master) { m.CacheDir = s.share + "/cache" }, "cachedir"},
		"sock_dir": {func(s site, m *Master) { m.OwnDirs["sock_dir"] = s.share }, "sock_dir"},
		"config":   {func(s site, m *Master) { m.ConfigFile = s.share + "/etc/master" }, "configuration"},
		"isolated": {func(s site, m *Master) { m.PkiDir = s.top + "/own" }, "pki_dir"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			p := s.plan(func(m *Master) { c.change(s, m) })
			if !slices.ContainsFunc(p.Refused, func(r string) bool { return strings.Contains(r, c.say) }) {
				t.Errorf("%q", p.Refused)
			}
		})
	}
	s := newSite(t)
	for _, to := range []string{"local", s.share + "/local"} {
		if p := Make(s.master(), to, s.on); len(p.Refused) == 0 {
			t.Errorf("copies in %s", to)
		}
	}
}
