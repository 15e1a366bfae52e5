package share

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// nodes are the other nodes of a test.
type nodes struct {
	mu   sync.Mutex
	all  map[node.ID]*Share
	errs map[node.ID]error
}

func (n *nodes) set(id node.ID, s *Share, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all[id], n.errs[id] = s, err
}

type others struct {
	*nodes
	self node.ID
}

func (o others) Members() (ids []node.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id := range o.all {
		if id != o.self {
			ids = append(ids, id)
		}
	}
	return ids
}

func (o others) Token(_ context.Context, id node.ID) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.errs[id]; err != nil {
		return "", err
	}
	return o.all[id].Token(), nil
}

func newNodes() *nodes { return &nodes{all: map[node.ID]*Share{}, errs: map[node.ID]error{}} }

func start(t *testing.T, n *nodes, id node.ID, dir string, change ...func(*Config)) *Share {
	t.Helper()
	c := Config{
		Dir: dir, Self: id, Peers: others{n, id},
		Every: 5 * time.Millisecond, Timeout: 10 * time.Second, Grace: 20 * time.Millisecond,
	}
	for _, f := range change {
		f(&c)
	}
	s, err := New(c)
	require.NoError(t, err)
	n.set(id, s, nil)
	require.NoError(t, s.Open(t.Context()))
	t.Cleanup(func() { s.Close() })
	return s
}

func await(t *testing.T, s *Share, want Condition) State {
	t.Helper()
	end := time.Now().Add(30 * time.Second)
	for s.State().Condition != want {
		if time.Now().After(end) {
			t.Fatalf("%+v, want condition %d", s.State(), want)
		}
		time.Sleep(time.Millisecond)
	}
	return s.State()
}

func TestSameDirectory(t *testing.T) {
	n, dir := newNodes(), t.TempDir()
	a, b := start(t, n, "a", dir), start(t, n, "b", dir)
	await(t, a, Good)
	await(t, b, Good)
	n.set("c", nil, errors.New("down")) // a node that does not answer says nothing about the share
	b.Close()
	b2 := start(t, n, "b", dir) // with another token
	await(t, b2, Good)
	await(t, a, Good)
}

func TestAnotherDirectory(t *testing.T) {
	n, dir := newNodes(), t.TempDir()
	a, b := start(t, n, "a", dir), start(t, n, "b", t.TempDir())
	await(t, a, Different)
	await(t, b, Different)
	b.Close()
	b = start(t, n, "b", dir)
	await(t, a, Good)
	await(t, b, Good)
	n.set("c", nil, ErrIsolated) // has left the share, or was never there
	end := time.Now().Add(30 * time.Second)
	for len(a.State().Apart) == 0 {
		if time.Now().After(end) {
			t.Fatalf("%+v", a.State())
		}
		time.Sleep(time.Millisecond)
	}
	if s := a.State(); s.Condition != Good || s.Apart[0] != "c" {
		t.Errorf("%+v", s)
	}
	if Here(dir, "a", b.Token()) || !Here(dir, "a", a.Token()) || Here(dir, "c", "") || Here(t.TempDir(), "a", a.Token()) {
		t.Error("the directory is not recognised")
	}
}

// Something else is mounted in the place of the share while everything runs, with a copy of all that was on it.
func TestCopyMountedOverShare(t *testing.T) {
	n, dir, other := newNodes(), t.TempDir(), t.TempDir()
	way := filepath.Join(t.TempDir(), "way")
	point := func(to string) {
		t.Helper()
		require.NoError(t, errors.Join(os.Symlink(to, way+".new"), os.Rename(way+".new", way)))
	}
	point(dir)
	renew := func(c *Config) { c.Renew, c.Grace = 50*time.Millisecond, 200*time.Millisecond }
	a, b := start(t, n, "a", dir, renew), start(t, n, "b", way, renew)
	await(t, a, Good)
	await(t, b, Good)
	require.NoError(t, os.CopyFS(other, os.DirFS(dir)))
	point(other)
	await(t, a, Different)
	await(t, b, Different)
	point(dir)
	await(t, a, Good)
	await(t, b, Good)
}

func TestDirectoryThatIsGone(t *testing.T) {
	n, dir := newNodes(), filepath.Join(t.TempDir(), "share")
	a := start(t, n, "a", dir)
	await(t, a, Broken)
	require.NoError(t, os.Mkdir(dir, 0o700))
	await(t, a, Good)
}

func TestHungShare(t *testing.T) {
	var mu sync.Mutex
	looks, hang, hangs := 0, make(chan struct{}), make(chan struct{})
	a := start(t, newNodes(), "a", t.TempDir(), func(c *Config) {
		c.Timeout = 20 * time.Millisecond
		c.look = func(dir string, self node.ID, token string, others []node.ID) (map[node.ID]string, error) {
			mu.Lock()
			looks++
			third := looks == 3
			mu.Unlock()
			if third {
				close(hangs)
				<-hang
			}
			return lookAtShare(dir, self, token, others)
		}
	})
	<-hangs // on a busy machine a look before took too long, too
	await(t, a, Hung)
	mu.Lock()
	if looks != 3 {
		t.Errorf("%d looks while one hung", looks)
	}
	mu.Unlock()
	close(hang)
	await(t, a, Good)
}

func TestClose_DiskHangs(t *testing.T) {
	hang, entered := make(chan struct{}), make(chan struct{})
	defer close(hang)
	a := start(t, newNodes(), "a", t.TempDir(), func(c *Config) {
		c.look = func(string, node.ID, string, []node.ID) (map[node.ID]string, error) {
			close(entered)
			<-hang
			return nil, errors.New("late")
		}
	})
	<-entered
	check.NoError(t, a.Close()) // the test would never end otherwise
}

func TestFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Symlink("/etc/passwd", tokenPath(dir, "b")))
	if _, err := lookAtShare(dir, "a", "token", []node.ID{"b"}); err == nil {
		t.Error("a link was followed")
	}
	require.NoError(t, os.Symlink(filepath.Join(dir, "x"), tokenPath(dir, "c")))
	if _, err := lookAtShare(dir, "c", "token", nil); err == nil {
		t.Error("a link was written through")
	}
}

func TestSameMount(t *testing.T) {
	dir := t.TempDir()
	if same, err := sameMount(dir, filepath.Dir(dir)); err != nil || !same {
		t.Errorf("%v %v", same, err)
	}
	if same, err := sameMount(dir, "/proc"); err != nil || same {
		t.Errorf("/proc: %v %v", same, err)
	}
	if _, err := sameMount(dir, filepath.Join(dir, "none")); err == nil {
		t.Error("a path that is not there is on a mount")
	}
}
