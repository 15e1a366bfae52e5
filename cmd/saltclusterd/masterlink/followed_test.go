package masterlink

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/localmaster/configtest"
)

// readKey reads a key of the master's from its files.
func readKey(of *localmaster.Config, name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(of.PkiDir, name))
}

func newFollowed(master *localmaster.Config, path string) *FollowedOptions {
	return NewFollowedOptions(FollowedConfig{
		Master: master, Path: path, ReadKey: readKey, Latest: func(*localmaster.Config) {}, Changed: func() {},
		Logger: slog.New(slog.DiscardHandler),
	})
}

// Options that cannot be followed leave everything as it was: a master does not start with such a configuration.
func TestFollowedOptions_Use(t *testing.T) {
	f := newFollowed(configtest.Load(t, 3006, ""), "")
	require.NoError(t, f.Use(configtest.Load(t, 3006, "request_server_ttl: 30\n")))
	unusable := "master_sign_pubkey: True\npki_dir: /nonexistent\nrequest_server_ttl: 0\n"
	if err := f.Use(configtest.Load(t, 3006, unusable)); err == nil {
		t.Fatal("no error without a key to sign with")
	}
	if f.TTL() != 30*time.Second || f.PubSigner() != nil {
		t.Error("something changed")
	}
	if err := f.Use(configtest.Load(t, 3006, "")); err != nil || f.TTL() != 0 {
		t.Errorf("%v, %v", err, f.TTL())
	}
}

// A fault in the master's configuration is found as soon as the master has started with it: with the engine stalekey,
// for example, keys are gone before saltclusterd is started again.
func TestFollowedOptions_RereadFindings(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "master")
	write := func(name, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	unfollowed := "interface: 127.0.0.1\nmaster_sign_pubkey: True\npki_dir: /nonexistent\n" // Reread ends with an error
	master := configtest.Write(t, path, 3006, unfollowed)
	i := newInspector(master)
	f := newFollowed(master, path)
	f.c.Latest = i.UseLatest
	options := func() (out []string) {
		if _, err := f.Reread(); err == nil {
			t.Error("options are followed without a key to sign with")
		}
		for _, f := range i.Findings() {
			out = append(out, f.Option)
		}
		return out
	}
	before := options()
	if slices.Contains(before, "engines") || slices.Contains(before, "include") {
		t.Errorf("%q", before)
	}
	write("master", unfollowed+"engines: [stalekey]\ndefault_include: '*.conf'\n")
	write("broken.conf", "a: [\n")
	if now := options(); !slices.Contains(now, "engines") || !slices.Contains(now, "include") {
		t.Errorf("%q", now)
	}
	write("clean.sls", "a:\n  key.timeout:\n    - delete: 90\n")
	write("master", unfollowed+"engines: [{thorium: {}}]\nthorium_roots: {base: ["+dir+"]}\n")
	if now := options(); !slices.Contains(now, "engines") {
		t.Errorf("%q", now)
	}
	write("master", unfollowed)
	if after := options(); !slices.Equal(after, before) {
		t.Errorf("%q, then %q", before, after)
	}
}

// A configuration that cannot be read is told from one that cannot be followed.
func TestFollowedOptions_RereadErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master")
	f := newFollowed(configtest.Write(t, path, 3006, ""), path)
	changed := 0
	f.c.Changed = func() { changed++ }
	for _, c := range []struct {
		text          string
		read, follows bool
	}{
		{"a: [\n", false, false},
		{"master_sign_pubkey: True\npki_dir: /nonexistent\n", true, false},
		{"request_server_ttl: 7\n", true, true},
	} {
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
		now, err := f.Reread()
		if (now != nil) != c.read || (err == nil) != c.follows || (f.Check().Level == health.OK) != c.follows {
			t.Errorf("%q: %v, %v, %+v", c.text, now != nil, err, f.Check())
		}
	}
	if changed != 3 || f.TTL() != 7*time.Second {
		t.Errorf("changed %d times, %v", changed, f.TTL())
	}
}

// Options that saltclusterd was built by and that the master has no more are named, with what to type, until they are
// as before.
func TestFollowedOptions_Check(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master")
	f := newFollowed(configtest.Write(t, path, 3007, "file_roots: {base: [/a]}\nworker_threads: 5\n"), path)
	for _, c := range []struct{ text, names, hint string }{
		{"file_roots: {base: [/a]}\nworker_threads: 7\nreactor: []\n", "", ""},
		{"file_roots: {base: [/a, /b]}\n", "file_roots", "daemon-reload"},
		{
			"file_roots: {base: [/a]}\nhash_type: sha512\nminion_data_cache: False\n", "minion_data_cache, hash_type",
			"systemctl reload saltclusterd",
		},
		{"file_roots: {base: [/a]}\n", "", ""},
	} {
		configtest.Write(t, path, 3007, c.text)
		if _, err := f.Reread(); err != nil {
			t.Fatal(err)
		}
		r := f.Check()
		if c.names == "" && r != fine || c.names != "" && (r.Level != health.Warn ||
			!strings.HasSuffix(r.Reason, ": "+c.names) || !strings.Contains(r.Hint, c.hint)) {
			t.Errorf("%q: %+v", c.text, r)
		}
	}
}
