package jobcache_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/localmaster/mastertest"
	"saltclusterd/sidecar/saltwire"
)

// TestPublishedAsStock: what real masters answer to pub_ret is what we read from the job caches that they have written.
func TestPublishedAsStock(t *testing.T) {
	for _, v := range mastertest.Versions(t) {
		t.Run(v, func(t *testing.T) {
			t.Parallel()
			compareAnswers(t, v)
		})
	}
}

func compareAnswers(t *testing.T, version string) {
	m := mastertest.New(t, mastertest.Options{Version: version})
	ver, err := localmaster.ParseVersion(version)
	require.NoError(t, err)
	cfg, err := localmaster.LoadConfig(m.ConfigPath, ver)
	require.NoError(t, err)
	keys := newKeys(t, filepath.Join(m.PkiDir, "minions"))
	var todo, asked []stockCase
	seen := map[string]bool{}
	for _, one := range cases(t, keys, ver.Major) {
		p, err := saltwire.PeekLoad(one.Load)
		if err != nil || p.Cmd != "_return" || one.python {
			continue
		}
		todo = append(todo, one)
		if is := p.JID; is != "" && is != "req" && is != "nocache" && !seen[is] {
			seen[is] = true
			asked = append(asked, question(t, is, "publisher"), question(t, is, "m2"))
			publishAuth(t, m.CacheDir, is, "publisher")
		}
	}
	publishAuth(t, m.CacheDir, testJID, "publisher") // nobody has returned yet
	asked = append(asked, question(t, testJID, "publisher"), question(t, "20200101000000000000", "publisher"),
		question(t, "../../jobs", "publisher"))
	theirs := runStock(t, m, append(todo, asked...), 0o022)[len(todo):]
	c, err := jobcache.New(jobcache.Config{Options: cfg, Version: ver, CacheDir: m.CacheDir, UID: -1, GID: -1, Keys: keys})
	require.NoError(t, err)
	defer c.Close()
	for i, one := range asked {
		p, err := saltwire.PeekLoad(one.Load)
		require.NoError(t, err)
		got, err := c.Published(t.Context(), p.JID, p.ID)
		switch stock := theirs[i].Ret; {
		case p.JID == "nonsense": // no master makes such a jid for a minion
		case string(stock) == "\xa0":
			if !errors.Is(err, jobcache.ErrUnknown) {
				t.Errorf("%s: stock answers with an empty text, we %q, %v", one.Name, got, err)
			}
		case err != nil || !bytes.Equal(sorted(t, got), sorted(t, stock)):
			t.Errorf("%s: %v\n ours %.1500q\nstock %.1500q", one.Name, err, got, stock)
		}
	}
	t.Logf("%d questions", len(asked))
}

func question(t *testing.T, jid, id string) stockCase {
	return stockCase{Name: jid + " by " + id, Load: wire(t, dict{"cmd", "pub_ret", "id", id, "jid", jid})}
}

func publishAuth(t *testing.T, cachedir, jid, id string) {
	t.Helper()
	dir := filepath.Join(cachedir, "publish_auth")
	require.NoError(t, errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, jid), []byte(id), 0o644)))
}

// sorted brings the entries of an answer into our order: a master has them as the directory lists them.
func sorted(t *testing.T, raw []byte) []byte {
	t.Helper()
	entries := map[string][]byte{}
	if err := saltwire.WalkMap(raw, func(key, value []byte) error {
		entries[string(key)] = value
		return nil
	}); err != nil {
		t.Fatalf("%x: %v", raw, err)
	}
	var out []byte
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		out = append(saltwire.AppendRaw(out, name), entries[name]...)
	}
	return out
}

func ask(t *testing.T, c *jobcache.Cache, jid, id string) (string, error) {
	t.Helper()
	b, err := c.Published(t.Context(), jid, id)
	return string(b), err
}

// Without publish_auth, which only the publisher's master has, the job's load tells.
func TestPublishedElsewhere(t *testing.T) {
	c, dir := newCache(t, stockOptions())
	if _, err := ask(t, c, testJID, "pub"); !errors.Is(err, jobcache.ErrUnknown) {
		t.Errorf("a job nobody knows: %v", err)
	}
	apply(t, c, ret(testJID, "m1", "return", "one", "out", "txt"))
	load := filepath.Join(jobDir(t, dir), ".load.p")
	for name, kwargs := range map[string]any{
		"by a person": dict{"delimiter", ":"}, "none": nil, "not text": dict{"id", 5}, "bytes": dict{"id", []byte("pub\xff")},
		"list": list{"id"},
	} {
		put(t, load, disk(t, dict{"cmd", "publish", "fun", "test.ping", "kwargs", kwargs}))
		if _, err := ask(t, c, testJID, "pub"); !errors.Is(err, jobcache.ErrUnknown) {
			t.Errorf("kwargs %s: %v", name, err)
		}
	}
	put(t, load, disk(t, dict{"cmd", "publish", "fun", "test.ping", "kwargs", dict{"delimiter", ":", "id", "pub"}}))
	want := string(wire(t, dict{"m1", dict{"ret", "one", "out", "txt"}}))
	if got, err := ask(t, c, testJID, "pub"); got != want || err != nil {
		t.Errorf("its publisher: %q, %v", got, err)
	}
	if got, err := ask(t, c, testJID, "m1"); got != "\x80" || err != nil {
		t.Errorf("another minion: %q, %v", got, err)
	}
	publishAuth(t, dir, testJID, "m1") // the master's own word counts
	if got, err := ask(t, c, testJID, "pub"); got != "\x80" || err != nil {
		t.Errorf("not the publisher: %q, %v", got, err)
	}
	publishAuth(t, dir, testJID, "") // after a power loss
	if got, err := ask(t, c, testJID, "pub"); got != want || err != nil {
		t.Errorf("its publisher, publish_auth emptied: %q, %v", got, err)
	}
	put(t, load, make([]byte, 100))
	if _, err := ask(t, c, testJID, "pub"); !errors.Is(err, jobcache.ErrUnknown) {
		t.Errorf("load emptied: %v", err)
	}
}

// A return that somebody is writing is waited for, but not for ever.
func TestPublishedWhileItIsWritten(t *testing.T) {
	c, dir := newCache(t, stockOptions())
	publishAuth(t, dir, testJID, "pub")
	apply(t, c, ret(testJID, "m1", "return", "one"))
	apply(t, c, ret(testJID, "m2", "return", "two"))
	path := filepath.Join(jobDir(t, dir), "m2/return.p")
	good := read(t, path)
	put(t, path, []byte(good[:len(good)-1]))
	if got, err := ask(t, c, testJID, "pub"); got != string(wire(t, dict{"m1", dict{"ret", "one"}})) || err != nil {
		t.Errorf("half a return: %q, %v", got, err)
	}
	timer := time.AfterFunc(10*time.Millisecond, func() { _ = os.WriteFile(path, []byte(good), 0o644) })
	defer timer.Stop()
	for late := time.Now().Add(10 * time.Second); ; {
		got, err := ask(t, c, testJID, "pub")
		if err != nil || time.Now().After(late) {
			t.Fatalf("%q, %v", got, err)
		}
		if got == string(wire(t, dict{"m1", dict{"ret", "one"}, "m2", dict{"ret", "two"}})) {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	put(t, path, nil)
	if _, err := c.Published(ctx, testJID, "pub"); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}

// What only Python reads right is left to it, and an answer has a size.
func TestPublishedNeedsPython(t *testing.T) {
	c, dir := newCache(t, stockOptions())
	publishAuth(t, dir, testJID, "pub")
	apply(t, c, ret(testJID, "m1"))
	path := filepath.Join(jobDir(t, dir), "m1/return.p")
	put(t, path, []byte("\x81\xa6return\xd4\x05\x00"))
	var python *jobcache.NeedsPython
	if _, err := ask(t, c, testJID, "pub"); !errors.As(err, &python) {
		t.Errorf("an extension of nobody's: %v", err)
	}
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Skip(err)
	}
	if _, err := ask(t, c, testJID, "pub"); !errors.As(err, &python) {
		t.Errorf("a terabyte: %v", err)
	}
}

func put(t *testing.T, path string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, content, 0o644))
}
