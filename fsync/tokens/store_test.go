package tokens

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func three(t *testing.T) (w *world, a, b, c *testNode) {
	w = newWorld(t, 3006, 3007, 3008)
	return w, w.nodes["a"], w.nodes["b"], w.nodes["c"]
}

// The directory of tokens may be a link to elsewhere, under another name.
func TestTokensBehindALink(t *testing.T) {
	for _, major := range []int{3006, 3008} {
		elsewhere := filepath.Join(t.TempDir(), "kept here")
		require.NoError(t, os.Mkdir(elsewhere, 0o700))
		cache := t.TempDir()
		require.NoError(t, os.Symlink(elsewhere, filepath.Join(cache, dir)))
		d := newDisk(Master{Major: major, CacheDir: cache, UID: -1, GID: -1})
		root, err := d.openRoot()
		require.NoError(t, err)
		defer root.Close()
		require.NoError(t, d.writeToken(root, secret(1), []byte("x"), 1<<33))
		have, err := d.listTokens(root)
		if _, there := os.Stat(filepath.Join(elsewhere, d.layout.file(secret(1)))); err != nil || there != nil ||
			!slices.Equal(have, []string{secret(1)}) {
			t.Errorf("%d: %d tokens, %v, %v", major, len(have), err, there)
		}
		check.NoError(t, errors.Join(d.syncDir(), d.removeToken(root, secret(1)), d.removeTemps()))
		if left, err := os.ReadDir(filepath.Dir(elsewhere)); err != nil || len(left) != 1 {
			t.Errorf("%d: left %v, %v", major, left, err)
		}
	}
}

// What was revoked on a node while saltclusterd was away is revoked everywhere, and a backup does not bring it back.
func TestStore_RevokeEverywhere(t *testing.T) {
	w, a, _, c := three(t)
	var datas [][]byte
	for i, n := range []*testNode{a, c} { // in the layouts of all versions
		datas = append(datas, n.mint(secret(i), time.Hour))
		w.everywhere(secret(i), datas[i])
	}
	c.close()
	require.NoError(t, os.Remove(c.path(secret(0))))
	c.open()
	w.everywhere(secret(0), nil)
	a.close()
	require.NoError(t, os.WriteFile(a.path(secret(0)), datas[0], 0o600))
	a.open()
	w.everywhere(secret(0), nil)
	w.everywhere(secret(1), datas[1])
	for _, n := range w.nodes {
		if info, err := os.Stat(n.path(secret(1))); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", n.id, info, err)
		}
		if left, err := filepath.Glob(filepath.Join(n.master.CacheDir, tempPrefix+"*")); err != nil || len(left) > 0 {
			t.Errorf("left on %s: %v, %v", n.id, left, err)
		}
	}
}

// A file that a power failure has cut, or something has written into, gives way to what the other masters have.
func TestStore_RestoreDamaged(t *testing.T) {
	w, a, b, c := three(t)
	data := a.mint(secret(0), time.Hour)
	w.everywhere(secret(0), data)
	other := tokenData(secret(0), time.Now().Add(50*time.Hour))
	damage := func(n *testNode, content []byte) {
		require.NoError(t, os.WriteFile(n.path(secret(0)), content, 0o600))
	}
	for _, content := range [][]byte{nil, data[:len(data)/2], newLayout(3008).wrap(other, 1<<40)} {
		damage(c, content)
		w.everywhere(secret(0), data)
	}
	damage(a, other) // it was made there, which does not count
	w.everywhere(secret(0), data)
	c.close() // what saltclusterd has not seen itself
	b.close()
	damage(c, other)
	damage(b, nil)
	c.open()
	b.open()
	w.everywhere(secret(0), data)
	require.NoError(t, os.Remove(c.path(secret(0))))
	w.everywhere(secret(0), nil) // revoked, as ever
}

func TestStore_LayoutPerVersion(t *testing.T) {
	w, a, _, c := three(t)
	data := a.mint(secret(0), time.Hour)
	w.everywhere(secret(0), data)
	for _, major := range []int{3006, 3008} {
		c.close()
		c.master.Major = major
		c.open()
		w.everywhere(secret(0), data)
	}
}

// A master of 3008.1 removes each token whose file is not from the future: its own, those of others, those from before
// saltclusterd knew of it, and those that never expire.
func TestTokensAreSpared(t *testing.T) {
	w, a, b, c := three(t)
	from := func(n *testNode, i int) time.Time {
		info, err := os.Stat(n.path(secret(i)))
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	lives := []time.Duration{time.Hour, 50 * 365 * 24 * time.Hour, 290 * 365 * 24 * time.Hour}
	for i, n := range []*testNode{a, b, c} {
		w.everywhere(secret(i), n.mint(secret(i), lives[i]))
	}
	future := func(i int) bool { return from(c, i).After(w.now().Add(time.Hour / 2)) }
	for i := range 3 {
		w.poll("its file is from the future", func() bool { return future(i) })
		if at := from(b, i); at.IsZero() || at.After(w.now()) {
			t.Errorf("the other's is of %s", at)
		}
	}
	require.NoError(t, os.Chtimes(c.path(secret(2)), time.Time{}, time.Now()))
	w.poll("it is again", func() bool { return future(2) })
	require.NoError(t, os.Remove(c.path(secret(1)))) // somebody revokes it all the same
	w.everywhere(secret(1), nil)
}

func TestExpiredTokens(t *testing.T) {
	w, a, b, c := three(t)
	c.close()
	data := a.mint(secret(0), time.Minute)
	w.poll("b has it", func() bool { return bytes.Equal(b.has(secret(0)), data) })
	w.mu.Lock()
	w.ahead = 2 * time.Minute
	w.mu.Unlock()
	require.NoError(t, os.Remove(a.path(secret(0)))) // as a master does
	for _, n := range []*testNode{a, b} {
		w.poll("forgotten", func() bool { st := n.store.Status(); return st.Live == 0 && st.Revoked == 0 })
	}
	if b.has(secret(0)) == nil {
		t.Error("an expired token is its master's to remove")
	}
	c.open()
	w.everywhere(secret(1), a.mint(secret(1), time.Hour))
	if c.has(secret(0)) != nil {
		t.Error("an expired token was sent")
	}
	// A revoked one is forgotten when no clock can take it for live.
	require.NoError(t, os.Remove(a.path(secret(1))))
	w.everywhere(secret(1), nil)
	w.mu.Lock()
	w.ahead = 4 * time.Hour
	w.mu.Unlock()
	for _, n := range w.nodes {
		w.poll("revoked one forgotten", func() bool { return n.store.Status().Revoked == 0 })
	}
}

func TestOtherFilesAreLeftAlone(t *testing.T) {
	w, a, _, c := three(t)
	for name, content := range map[string][]byte{
		"notes": []byte("x"), secret(1)[:31]: []byte("x"), secret(2): []byte("no map"),
		secret(3): tokenData(secret(4), time.Now().Add(time.Hour)), // says it is another one
	} {
		require.NoError(t, os.WriteFile(filepath.Join(a.master.CacheDir, "tokens", name), content, 0o600))
	}
	w.everywhere(secret(0), a.mint(secret(0), time.Hour))
	if names, err := os.ReadDir(filepath.Join(c.master.CacheDir, "tokens")); err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
	if names, err := os.ReadDir(filepath.Join(a.master.CacheDir, "tokens")); err != nil || len(names) != 5 {
		t.Errorf("%v, %v", names, err)
	}
}

func TestOff(t *testing.T) {
	for _, m := range []Master{{Major: 3006, Store: "rediscluster", Driver: localfs},
		{Major: 3008, Store: localfs, Driver: "redis"}} {
		if m.reasonOff() == "" {
			t.Errorf("%+v is on", m)
		}
	}
}

func TestTableHoldsNoToken(t *testing.T) {
	w, a, _, c := three(t)
	w.everywhere(secret(0), a.mint(secret(0), time.Hour))
	for _, n := range []*testNode{a, c} {
		n.close()
		raw, err := os.ReadFile(filepath.Join(n.state, tableName))
		if err != nil || bytes.Contains(raw, []byte(secret(0))) || !bytes.Contains(raw, []byte(`"h":true`)) {
			t.Errorf("%s, %v", raw, err)
		}
	}
}

func TestStrangersAreRefused(t *testing.T) {
	w, _, _, c := three(t)
	now := time.Now()
	body := func(token string, data []byte) []byte {
		return message{items: []item{{token: token, data: data}}}.encodeMessage()
	}
	good := tokenData(secret(0), now.Add(time.Hour))
	for name, b := range map[string][]byte{
		"path":    body("../"+secret(0)[3:], good),
		"short":   body("abc", tokenData("abc", now.Add(time.Hour))),
		"another": body(secret(1), good),
		"no map":  body(secret(0), []byte{0x90}),
		"expired": body(secret(0), tokenData(secret(0), now.Add(-time.Hour))),
	} {
		_, _ = w.Send(t.Context(), "a", "c", b)
		if names, err := os.ReadDir(filepath.Join(c.master.CacheDir, "tokens")); err != nil || len(names) > 0 {
			t.Fatalf("%s: %v, %v", name, names, err)
		}
	}
	if _, err := w.Send(t.Context(), "nobody", "c", body(secret(0), good)); err == nil ||
		c.has(secret(0)) != nil {
		t.Errorf("taken from somebody who is no member: %v", err)
	}
	w.everywhere(secret(0), good[:0:0])
	if _, err := w.Send(t.Context(), "a", "c", body(secret(0), good)); err != nil ||
		!bytes.Equal(c.has(secret(0)), good) {
		t.Errorf("the good one was refused: %v", err)
	}
}

func TestErrorsDoNotNameTokens(t *testing.T) {
	d := disk{cachedir: t.TempDir(), uid: -1, gid: -1, layout: plain{}}
	root, err := d.openRoot()
	require.NoError(t, err)
	defer root.Close()
	if _, _, err := d.readToken(root, secret(0)); err == nil || strings.Contains(err.Error(), secret(0)) ||
		!errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	require.NoError(t, os.MkdirAll(filepath.Join(d.cachedir, "tokens", secret(0), "x"), 0o700))
	for _, err := range []error{d.removeToken(root, secret(0)), d.writeToken(root, secret(0), nil, 1)} {
		if err == nil || strings.Contains(err.Error(), secret(0)) {
			t.Error(err)
		}
	}
}

// The bytes that other nodes and later versions understand.
func TestWireFixtures(t *testing.T) {
	at := time.Unix(2_000_000_000, 0)
	live := item{token: secret(0), data: tokenData(secret(0), at), fingerprint: fingerprintOf(secret(0)), expire: at.Unix()}
	gone := item{fingerprint: fingerprintOf(secret(1)), expire: at.Unix(), revoked: true}
	for name, m := range map[string]message{
		"news-v1":   {items: []item{live, gone}},
		"digest-v1": {digest: true, answer: true, items: []item{{fingerprint: live.fingerprint, expire: live.expire}, gone}},
	} {
		path := filepath.Join("testdata", "wire", name+".hex")
		want, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) && os.Getenv("UPDATE_FIXTURES") != "" {
			want = []byte(hex.EncodeToString(m.encodeMessage()) + "\n")
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, want, 0o644))
		}
		require.NoError(t, err)
		if hex.EncodeToString(m.encodeMessage()) != string(bytes.TrimSpace(want)) {
			t.Errorf("%s: %x", name, m.encodeMessage())
		}
		got, err := decodeMessage(m.encodeMessage())
		if err != nil || len(got.items) != 2 || got.items[0].fingerprint != live.fingerprint || got.items[0].expire != live.expire ||
			got.items[1].expire != gone.expire {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	at := time.Unix(2_000_000_000, 0)
	items := []item{{token: secret(0), data: tokenData(secret(0), at)}, {revoked: true, expire: 7}}
	f.Add(message{items: items}.encodeMessage())
	f.Add(message{digest: true, answer: true, items: []item{{expire: 9}, {revoked: true, expire: 7}}}.encodeMessage())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMessage(b)
		if err != nil {
			return
		}
		if again := m.encodeMessage(); len(again) > len(b) {
			t.Errorf("%d bytes became %d", len(b), len(again))
		}
		for _, i := range m.items {
			if i.token == "" {
				continue
			}
			for _, l := range []layout{plain{}, bank{}} {
				data := l.unwrap(l.wrap(i.data, i.expire))
				if _, err := parseToken(i.token, data); err != nil {
					t.Errorf("%s: %v", l.name(), err)
				}
			}
		}
	})
}

func FuzzFile(f *testing.F) {
	at := time.Unix(2_000_000_000, 0)
	f.Add(bank{}.wrap(tokenData(secret(0), at), at.Unix()))
	f.Add(tokenData(secret(0), at))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, l := range []layout{plain{}, bank{}} {
			if at, err := parseToken(secret(0), l.unwrap(b)); err == nil && at < 0 {
				t.Errorf("expires at %d", at)
			}
		}
	})
}
