package jobcache_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/localmaster/mastertest"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// setting is a master's configuration under which the same loads are tried.
type setting struct {
	name, config string
	umask        uint32 // of the master; 0: 022
}

var settings = []setting{
	{name: "default"},
	{name: "odd", config: "job_cache_store_endtime: True\nhash_type: md5\nmax_event_size: 3000\n"},
	{name: "signed", config: "require_minion_sign_messages: True\ndrop_messages_signature_fail: True\nsigning_algorithm: PKCS1v15-SHA224\n"},
	{name: "unsigned",
		config: "drop_messages_signature_fail: False\nsigning_algorithm: PKCS1v15-SHA1\nmax_event_size: 200000\n"},
	{name: "umask 077", umask: 0o077},
	{name: "umask 027", config: "job_cache_store_endtime: True\n", umask: 0o027},
	{name: "umask 002", umask: 0o002},
}

// mask is the umask of the setting's master.
func (s setting) mask() uint32 { return cmp.Or(s.umask, 0o022) }

// TestSameAsStock gives the same loads to the code of real masters and to ours and compares every file (bytes, modes)
// and every event (bytes, order).
func TestSameAsStock(t *testing.T) {
	for _, v := range mastertest.Versions(t) {
		for _, s := range settings {
			t.Run(v+"/"+s.name, func(t *testing.T) {
				t.Parallel() // they wait for disks and interpreters more than they compute
				compare(t, v, s)
			})
		}
	}
}

type stockCase struct {
	Name   string `json:"name"`
	Load   []byte `json:"load"`
	Now    int64  `json:"now"`
	python bool   // only Python can take it
	bad    bool   // no Salt can read it
	any    bool   // whichever of these
}

type stockResult struct {
	Ret    []byte   `json:"ret"`
	Events [][]byte `json:"events"`
}

func compare(t *testing.T, version string, s setting) {
	m := mastertest.New(t, mastertest.Options{Version: version, Config: s.config})
	ver, err := localmaster.ParseVersion(version)
	require.NoError(t, err)
	cfg, err := localmaster.LoadConfig(m.ConfigPath, ver)
	require.NoError(t, err)
	keys := newKeys(t, filepath.Join(m.PkiDir, "minions"))
	ours, c := t.TempDir(), (*jobcache.Cache)(nil)
	if c, err = jobcache.New(jobcache.Config{
		Options: cfg, Version: ver, CacheDir: ours, UID: -1, GID: -1, Keys: keys, Umask: s.mask,
	}); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all := cases(t, keys, ver.Major)
	if s.umask == 0 { // on a umask only modes depend, whatever is in the files
		all = append(all, randomCases(t, mastertest.Randoms(t, 250), mastertest.RandomSeed(t), all[len(all)-1].Now)...)
	}
	var native []stockCase
	var plans []jobcache.Plan
	for _, one := range all {
		plan, err := planOf(c, one)
		var needs *jobcache.NeedsPython
		isPython := errors.As(err, &needs)
		if strings.HasPrefix(one.Name, "signed ") && cfg.Text("signing_algorithm") == "" && ver.AsksSigningAlgorithm() {
			one.python = true // stock code raises
		}
		if s.name == "signed" && !isPython {
			one.python = false // dropped before anything else is looked at
		}
		if one.any {
			one.python, one.bad = isPython, errors.Is(err, jobcache.ErrMalformed)
		}
		if one.python != isPython || one.bad != errors.Is(err, jobcache.ErrMalformed) || err != nil && !isPython && !one.bad {
			t.Errorf("%s: %v, only Python: %v", one.Name, err, one.python)
		}
		if err == nil || one.bad {
			native, plans = append(native, one), append(plans, plan)
		}
	}
	theirs := runStock(t, m, native, s.mask())
	for i, plan := range plans {
		for range 2 { // again, as after a kill
			if err := c.Apply(context.Background(), plan); err != nil {
				t.Errorf("%s: %v", native[i].Name, err)
			}
		}
		compareEvents(t, native[i].Name, plan, theirs[i])
	}
	compareTrees(t, filepath.Join(m.CacheDir, "jobs"), filepath.Join(ours, "jobs"), s.mask())
	compareTrees(t, filepath.Join(m.CacheDir, "syndics"), filepath.Join(ours, "syndics"), s.mask())
}

func planOf(c *jobcache.Cache, one stockCase) (jobcache.Plan, error) {
	at := time.UnixMicro(one.Now)
	facts := jobcache.Facts{Received: at}
	if p, err := saltwire.PeekLoad(one.Load); err == nil {
		facts.JID = c.Assign(p.JID, at)
	}
	return c.Plan(one.Load, facts)
}

func runStock(t *testing.T, m *mastertest.Master, todo []stockCase, umask uint32) (results []stockResult) {
	t.Helper()
	m.Code("testdata/stock.py", umask, todo, &results)
	if len(results) != len(todo) {
		t.Fatalf("%d results", len(results))
	}
	return results
}

func compareEvents(t *testing.T, name string, plan jobcache.Plan, theirs stockResult) {
	t.Helper()
	if !bytes.Equal(plan.Reply, theirs.Ret) {
		t.Errorf("%s: reply %x, stock %x", name, plan.Reply, theirs.Ret)
	}
	if len(plan.Events) != len(theirs.Events) {
		t.Errorf("%s: %d events, stock %d", name, len(plan.Events), len(theirs.Events))
		return
	}
	for i, e := range plan.Events {
		if got := saltwire.AppendEvent(nil, e.Tag, e.Data); !bytes.Equal(got, theirs.Events[i]) {
			t.Errorf("%s: event %d\n ours %.1500q\nstock %.1500q", name, i, got, theirs.Events[i])
		}
	}
}

// compareTrees compares names, modes and bytes. The empty list of minions for jobs of other masters is ours alone.
func compareTrees(t *testing.T, stock, ours string, umask uint32) {
	t.Helper()
	a, b := tree(t, stock), tree(t, ours)
	for name, want := range a {
		if got, ok := b[name]; !ok {
			t.Errorf("%s is missing (%.200q)", name, want)
		} else if got != want {
			t.Errorf("%s\n ours %.1500q\nstock %.1500q", name, got, want)
		}
	}
	for name, got := range b {
		empty := fs.FileMode(0o666&^umask).String() + " \x90"
		if _, ok := a[name]; !ok && !(strings.HasSuffix(name, "/.minions.p") && got == empty) {
			t.Errorf("%s should not be (%.200q)", name, got)
		}
	}
	t.Logf("%d files and directories", len(a))
}

func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, root)
		out[name] = info.Mode().String()
		if d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			out[name] += " " + string(text)
			return err
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return out
}

// testKeys is the cluster's view of keys, with files beside it for the stock code.
type testKeys struct {
	ids  []string
	pub  string
	sign *saltcrypt.MasterKey
}

func newKeys(t *testing.T, dir string) *testKeys {
	t.Helper()
	key, err := saltcrypt.GenerateMasterKey(2048)
	require.NoError(t, err)
	k := &testKeys{ids: []string{"Web1", "db1", "m1", "m2", "syndic1", "w[1]", "web2"}, pub: key.PublicText(), sign: key}
	if dir == "" {
		return k
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for _, id := range k.ids {
		require.NoError(t, os.WriteFile(filepath.Join(dir, id), []byte(k.pub), 0o644))
	}
	return k
}

func (k *testKeys) IDs() []string { return k.ids }

func (k *testKeys) Accepted(id string) (string, bool) {
	for _, have := range k.ids {
		if have == id {
			return k.pub, true
		}
	}
	return "", false
}

// MarshalJSON writes Load as base64, which is what encoding/json does with bytes; the name is for the reader of a file.
func (c stockCase) MarshalJSON() ([]byte, error) {
	return []byte(fmt.Sprintf(`{"name":%q,"load":%q,"now":%d}`, c.Name, base64.StdEncoding.EncodeToString(c.Load),
		c.Now)), nil
}
