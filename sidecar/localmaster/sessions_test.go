package localmaster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltcrypt"
)

type sessionRig struct {
	t   *testing.T
	dir string
	now time.Time
	s   *Sessions
}

func newSessionRig(t *testing.T, major int) *sessionRig {
	r := &sessionRig{t: t, dir: t.TempDir(), now: time.Now()}
	r.s = NewSessions(SessionsOptions{
		CacheDir: r.dir, User: "root", Version: Version{Major: major}, Owner: Unowned,
		Now: func() time.Time { return r.now },
	})
	r.restartMaster()
	return r
}

// restartMaster leaves what a 3006 master leaves when it starts.
func (r *sessionRig) restartMaster() {
	path := filepath.Join(r.dir, ".root_key")
	_ = os.Remove(path)
	r.now = r.now.Add(time.Minute)
	require.NoError(r.t, os.WriteFile(path, []byte("k"), 0o600))
	require.NoError(r.t, os.Chtimes(path, r.now, r.now))
}

func (r *sessionRig) path(id string) string { return filepath.Join(r.dir, "sessions", id) }

func (r *sessionRig) file(id string) saltcrypt.Key {
	r.t.Helper()
	text, err := os.ReadFile(r.path(id))
	require.NoError(r.t, err)
	k, err := saltcrypt.ParseKey(string(text))
	require.NoError(r.t, err)
	return k
}

// salt writes a session file as a worker does.
func (r *sessionRig) salt(id string, k saltcrypt.Key, mtime time.Time) {
	r.t.Helper()
	require.NoError(r.t, os.MkdirAll(filepath.Dir(r.path(id)), 0o700))
	require.NoError(r.t, os.WriteFile(r.path(id), []byte(k.Text()), 0o600))
	require.NoError(r.t, os.Chtimes(r.path(id), mtime, mtime))
}

func (r *sessionRig) ensure(id string, want, local saltcrypt.Key) {
	r.t.Helper()
	got, same, err := r.s.Ensure(id, want)
	require.NoError(r.t, err)
	if !got.Equal(local) || same != local.Equal(want) {
		r.t.Errorf("Ensure: the expected local key %v, same %v", got.Equal(local), same)
	}
	if !r.file(id).Equal(local) {
		r.t.Error("the file holds another key than Ensure says")
	}
}

func newKey(t testing.TB) saltcrypt.Key {
	t.Helper()
	k, err := saltcrypt.NewKey()
	require.NoError(t, err)
	return k
}

func TestEnsureWritesOnce(t *testing.T) {
	for _, major := range []int{3006, 3007, 3008} {
		r := newSessionRig(t, major)
		k := newKey(t)
		r.ensure("m1", k, k)
		info, err := os.Stat(r.path("m1"))
		require.NoError(t, err)
		if info.Mode().Perm() != 0o600 || !info.ModTime().After(r.now.Add(sessionAhead/2)) || info.Size() != 76 {
			t.Errorf("file: mode %v, date %v, %d bytes", info.Mode(), info.ModTime(), info.Size())
		}
		require.NoError(t, os.Remove(r.path("m1")))
		if _, same, err := r.s.Ensure("m1", k); err != nil || !same {
			t.Error("a known key touched the disk")
		}
		r.s.Invalidate("m1")
		r.ensure("m1", k, k)
		if names, _ := os.ReadDir(filepath.Dir(r.path("x"))); len(names) != 1 {
			t.Errorf("%d files left behind", len(names))
		}
	}
}

func TestOwn(t *testing.T) {
	r := newSessionRig(t, 3007)
	k := newKey(t)
	for name, c := range map[string]struct {
		made time.Time
		good bool
	}{"a day old": {r.now.Add(-24 * time.Hour), false}, "of today": {r.now.Add(-time.Hour),
		true}, "ours": {r.now.Add(sessionAhead), false}} {
		r.salt("m1", k, c.made)
		got, until, ok := r.s.Own("m1")
		if ok != c.good || ok && (!got.Equal(k) || until.Sub(c.made).Round(time.Second) != 24*time.Hour) {
			t.Errorf("%s: %t, until %v", name, ok, until)
		}
	}
	for _, id := range []string{"m2", "..", "a/b"} {
		if _, _, ok := r.s.Own(id); ok {
			t.Errorf("%s has one", id)
		}
	}
	r.salt("m1", k, r.now)
	ours := newKey(t)
	r.ensure("m1", ours, ours)
	r.s.Reset()
	r.ensure("m1", ours, ours)
	r.s.Invalidate("m1")
	if got, _, ok := r.s.Own("m1"); !ok || !got.Equal(k) {
		t.Error("what Ensure has replaced is forgotten")
	}
	r.ensure("m3", ours, ours)
	if _, _, ok := r.s.Own("m3"); ok {
		t.Error("what Ensure wrote is taken for the master's")
	}
}

// A master that is left alone takes the keys that its minions have for as long as its own.
func TestReleaseSessions(t *testing.T) {
	r := newSessionRig(t, 3008)
	check.NoError(t, ReleaseSessions(r.dir, r.now), "without a directory")
	k := newKey(t)
	r.ensure("m1", k, k)
	earlier := r.now.Add(-time.Hour).Round(time.Second)
	r.salt("m2", newKey(t), earlier)
	require.NoError(t, ReleaseSessions(r.dir, r.now))
	if got, until, ok := r.s.Own("m1"); !ok || !got.Equal(k) || until.Sub(r.now).Round(time.Minute) != 24*time.Hour {
		t.Errorf("m1: %t, until %v", ok, until)
	}
	if info, err := os.Stat(r.path("m2")); err != nil || !info.ModTime().Equal(earlier) {
		t.Errorf("the master's own was touched: %v", err)
	}
}

func TestLeaveOn3006(t *testing.T) {
	r := newSessionRig(t, 3006)
	check.NoError(t, r.s.Leave(), "without a directory")
	own, kept, want, same, gone := newKey(t), newKey(t), newKey(t), newKey(t), newKey(t)
	earlier := r.now.Add(-time.Hour).Round(time.Second)
	r.salt("m1", own, earlier)
	r.ensure("m1", want, own) // workers may have it in memory
	r.ensure("m2", same, same)
	r.salt("m3", kept, earlier) // not heard of
	r.ensure("m4", gone, gone)
	require.NoError(t, os.Remove(r.path("m4")))
	require.NoError(t, r.s.Leave())
	for id, key := range map[string]saltcrypt.Key{"m1": want, "m2": same} {
		if got, until, ok := r.s.Own(id); !ok || !got.Equal(key) || until.Sub(r.now).Round(time.Minute) != 24*time.Hour {
			t.Errorf("%s: %t, until %v", id, ok, until)
		}
	}
	if info, err := os.Stat(r.path("m3")); err != nil || !info.ModTime().Equal(earlier) || !r.file("m3").Equal(kept) {
		t.Errorf("what was not heard of was touched: %v", err)
	}
	if _, err := os.Stat(r.path("m4")); !os.IsNotExist(err) {
		t.Errorf("a deleted minion has a file again: %v", err)
	}
}

func TestEnsureReplacesWhereWorkersNotice(t *testing.T) {
	for _, major := range []int{3007, 3008} {
		r := newSessionRig(t, major)
		a, b := newKey(t), newKey(t)
		r.ensure("m1", a, a)
		before, _ := os.Stat(r.path("m1"))
		r.ensure("m1", b, b)
		after, _ := os.Stat(r.path("m1"))
		if !after.ModTime().After(before.ModTime()) {
			t.Error("the new file is not dated later, workers would keep the old key")
		}
	}
}

func TestEnsureOn3006(t *testing.T) {
	r := newSessionRig(t, 3006)
	a, b, c := newKey(t), newKey(t), newKey(t)
	r.salt("m1", a, r.now.Add(-time.Hour)) // a worker may have it in memory
	r.ensure("m1", b, a)
	r.ensure("m1", b, a)
	r.restartMaster()
	r.ensure("m1", b, b)
	r.restartMaster() // workers of this life read b while the keys were equal: nobody looked for a restart
	r.ensure("m1", c, b)
	r.restartMaster()
	r.s.Reset()
	r.ensure("m1", c, c)

	r.salt("m2", a, r.now.Add(-25*time.Hour)) // expired in every memory
	r.ensure("m2", b, b)
	r.salt("m3", a, r.now.Add(-time.Hour))
	require.NoError(t, os.WriteFile(r.path("m3"), []byte("garbage"), 0o600))
	r.ensure("m3", b, b)
}

func TestRotatedBySalt(t *testing.T) {
	r := newSessionRig(t, 3006)
	a, b := newKey(t), newKey(t)
	r.ensure("m1", a, a)
	r.salt("m1", b, r.now)
	r.s.Invalidate("m1") // the caller was told "bad load"
	r.ensure("m1", a, b)
}

func TestEnsureNeverLeavesTheDirectory(t *testing.T) {
	r := newSessionRig(t, 3008)
	k := newKey(t)
	for _, id := range []string{"", ".", "..", "a/b", "../x", "/etc/x", "a\x00b", strings.Repeat("x", 256),
		tempPrefix + "1"} {
		if _, _, err := r.s.Ensure(id, k); !errors.Is(err, ErrSessionID) {
			t.Errorf("id %q: %v", id, err)
		}
	}
	for _, id := range []string{"ümläut", "a b", "a\\b", "$(x)", HiddenID, "...", "-rf"} {
		r.ensure(id, k, k)
	}
	victim := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.WriteFile(victim, []byte("precious"), 0o600))
	require.NoError(t, os.Symlink(victim, r.path("link")))
	r.ensure("link", k, k)
	if text, _ := os.ReadFile(victim); string(text) != "precious" {
		t.Error("wrote through a symlink")
	}
}

func TestEnsureConcurrentlyAndBounded(t *testing.T) {
	r := newSessionRig(t, 3006)
	r.s.o.MaxIDs = sessionStripes
	k := newKey(t)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 100 {
				id := "m" + string(rune('a'+i%26)) + string(rune('a'+i/26))
				if _, same, err := r.s.Ensure(id, k); err != nil || !same {
					t.Errorf("worker %d: %v", w, err)
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for i := range r.s.stripes {
		total += len(r.s.stripes[i].ids)
	}
	if total > sessionStripes {
		t.Errorf("%d ids remembered, %d allowed", total, sessionStripes)
	}
}

func BenchmarkEnsureKnown(b *testing.B) {
	s := NewSessions(SessionsOptions{CacheDir: b.TempDir(), Version: Version{Major: 3008}, Owner: Unowned})
	k := newKey(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.Ensure("minion-17.example.org", k); err != nil {
			b.Fatal(err)
		}
	}
}

// What a sign-in left behind that was not accepted goes away; the file of anything else stays.
func TestDiscard(t *testing.T) {
	for _, major := range []int{3006, 3007, 3008} {
		r := newSessionRig(t, major)
		k, other := newKey(t), newKey(t)
		discard := func(id string, key saltcrypt.Key) {
			t.Helper()
			check.NoError(t, r.s.Discard(id, key))
		}
		discard("nobody", k)
		r.ensure("m1", k, k)
		discard("m1", other)
		if !r.file("m1").Equal(k) {
			t.Error("another sign-in's session is gone")
		}
		discard("m1", k)
		if names, _ := os.ReadDir(filepath.Dir(r.path("m1"))); len(names) != 0 {
			t.Errorf("%d files left behind", len(names))
		}
		r.ensure("m1", k, k)
		r.salt("m2", other, r.now)
		discard("m2", k)
		if !r.file("m2").Equal(other) {
			t.Error("the master's own session is gone")
		}
		if err := r.s.Discard("../m1", k); !errors.Is(err, ErrSessionID) {
			t.Errorf("a path: %v", err)
		}
	}
}
