package keydir

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/consensus/state"
	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/signal"
)

// lateLog is a consensus of which one node hears some time after the others.
type lateLog struct {
	*shared
	cutOff atomic.Bool
	mu     sync.Mutex
	view   state.View
}

func (l *lateLog) View() state.View {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.view
}

func (l *lateLog) catchUp(context.Context) error {
	if l.cutOff.Load() {
		return errNoQuorum
	}
	v := l.shared.View()
	l.mu.Lock()
	defer l.mu.Unlock()
	if v.Rev() > l.view.Rev() {
		l.view = v
	}
	return nil
}

// Watch tells of every change with a delay of its own, and each time only of what was true when it began.
func (l *lateLog) Watch(ctx context.Context) <-chan struct{} {
	in, out := l.shared.Watch(ctx), make(chan struct{}, 1)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-in:
			}
			if l.cutOff.Load() {
				continue
			}
			v := l.shared.View()
			select {
			case <-ctx.Done():
				return
			case <-time.After(rand.N(60 * time.Millisecond)):
			}
			l.mu.Lock()
			if v.Rev() > l.view.Rev() {
				l.view = v
			}
			l.mu.Unlock()
			signal.Send(out)
		}
	}()
	return out
}

// sharing starts nodes that mirror one and the same directories.
func sharing(t *testing.T, log *shared, names ...string) []*testNode {
	var nodes []*testNode
	for _, name := range names {
		n := newTestNode(t, name, log)
		if len(nodes) > 0 {
			n.pki = nodes[0].pki
		}
		n.late = &lateLog{shared: log, view: log.View()}
		nodes = append(nodes, n.start())
	}
	return nodes
}

func TestSharedDirectories(t *testing.T) {
	k := keyTexts()
	log := newShared(t)
	nodes := sharing(t, log, "m1", "m2", "m3")
	nodes[0].put(acceptedDir, "web", k[0]) // salt-key on any host
	nodes[1].put(pendingDir, "db", k[1])
	await(t, files{"minions/web": k[0], "minions_pre/db": k[1]}, nodes...)
	nodes[2].move(pendingDir, acceptedDir, "db")
	await(t, files{"minions/web": k[0], "minions/db": k[1]}, nodes...)
	nodes[1].remove(acceptedDir, "web")
	await(t, files{"minions/db": k[1]}, nodes...)
	for _, n := range nodes {
		if entries, _ := os.ReadDir(filepath.Join(n.state, "keys-aside")); len(entries) > 0 {
			t.Errorf("%s put %d files aside", n.id, len(entries))
		}
	}
}

// What consensus decides in quick succession must end as it said last, with nothing that looks like somebody's edit: a
// node behind the others must not write what was true before.
func TestSharedDirectoriesAndNodesBehind(t *testing.T) {
	k := keyTexts()
	log := newShared(t)
	nodes := sharing(t, log, "m1", "m2", "m3")
	const keys = 40
	want := files{}
	for i := range keys {
		id := fmt.Sprint("web", i)
		steps := []state.Command{
			state.KeySet{ID: id, State: state.KeyPending, Pub: k[i%4]},
			state.KeySet{ID: id, State: state.KeyAccepted, Pub: k[i%4]},
		}
		if i%2 == 0 {
			steps = append(steps, state.KeySet{ID: id, State: state.KeyDeleted})
		} else {
			want["minions/"+id] = k[i%4]
		}
		for _, cmd := range steps {
			cmd := cmd.(state.KeySet)
			cmd.BaseRev = log.View().KeyRev(id)
			r, err := log.Propose(t.Context(), []state.Command{cmd})
			if err != nil || r[0].Code != state.OK {
				t.Fatalf("%s: %+v %v", id, r, err)
			}
			time.Sleep(rand.N(10 * time.Millisecond))
		}
	}
	decided, _ := log.counts()
	await(t, want, nodes...)
	for _, n := range nodes {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		check.NoError(t, n.dir.WaitSynced(ctx, log.View().Rev()), n.id)
		cancel()
	}
	if now, _ := log.counts(); now != decided {
		t.Errorf("%d changes of the nodes' own were taken for edits", now-decided)
	}
	await(t, want, nodes...)
}

// Whoever goes on after a keeper knows what it knew: what was edited meanwhile is an edit.
func TestKeeperEnds(t *testing.T) {
	k := keyTexts()
	log := newShared(t)
	nodes := sharing(t, log, "m1", "m2", "m3")
	want := files{}
	for i, keeper := range nodes[:2] {
		id := fmt.Sprint("web", i)
		keeper.put(pendingDir, id, k[i])
		want["minions_pre/"+id] = k[i]
		await(t, want, nodes...)
		keeper.stop()
		keeper.move(pendingDir, acceptedDir, id)
		delete(want, "minions_pre/"+id)
		want["minions/"+id] = k[i]
		await(t, want, nodes[i+1:]...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	check.NoError(t, nodes[2].dir.WaitSynced(ctx, log.View().Rev()))
}

// What the operator decides in the moment in which a keeper ends that has not noted the pending key yet: the next one
// finds a key that its base does not know, pending with the cluster and decided on disk.
func TestKeeper_EndBeforeNotingPending(t *testing.T) {
	k := keyTexts()
	for name, c := range map[string]struct {
		decided place
		before  []state.KeySet // than the pending key
		want    place
	}{
		"accepted": {acceptedDir, nil, acceptedDir},
		"rejected": {rejectedDir, nil, rejectedDir},
		// The file may be what the keeper wrote before the deletion and had no time to note: it stays deleted.
		"accepted, of a key that came again": {
			acceptedDir, []state.KeySet{{State: state.KeyAccepted, Pub: k[0]}, {State: state.KeyDeleted}}, pendingDir,
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := newShared(t)
			nodes := sharing(t, log, "m1")
			nodes[0].stop()
			for _, cmd := range append(c.before, state.KeySet{State: state.KeyPending, Pub: k[0]}) {
				cmd.ID, cmd.BaseRev = "web", log.View().KeyRev("web")
				if r, err := log.Propose(t.Context(), []state.Command{cmd}); err != nil || r[0].Code != state.OK {
					t.Fatalf("%+v %v", r, err)
				}
			}
			nodes[0].put(c.decided, "web", k[0])
			nodes[0].start()
			await(t, files{c.want.String() + "/web": k[0]}, nodes...)
			kept, _ := filepath.Glob(filepath.Join(nodes[0].state, "keys-aside", "*", "web*"))
			if undone := c.want != c.decided; len(kept) > 0 != undone || logged(nodes[0], "overruled") != undone {
				t.Errorf("kept aside: %v", kept)
			}
		})
	}
}

func TestKeeper_LockHeldElsewhere(t *testing.T) {
	k := keyTexts()
	log := newShared(t)
	n := newTestNode(t, "m1", log)
	n.late = &lateLog{shared: log, view: log.View()}
	f, err := os.OpenFile(filepath.Join(n.pki, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	r, err := log.Propose(t.Context(), []state.Command{state.KeySet{ID: "web", State: state.KeyAccepted, Pub: k[0]}})
	require.NoError(t, err)
	n.open()
	if n.dir.Synced(r[0].Rev) {
		t.Error("synced before anybody has written")
	}
	if _, err := f.WriteAt([]byte(lockText("another", r[0].Rev)), 0); err != nil { // of a former cluster
		t.Fatal(err)
	}
	if n.dir.keeperRev(lockText("another", 7)) != 0 || n.dir.keeperRev("") != 0 || n.dir.keeperRev("a b c") != 0 {
		t.Error("believes what is not said about this cluster")
	}
	if _, err := f.WriteAt([]byte(lockText(log.View().Identity().UUID, r[0].Rev)), 0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	check.NoError(t, n.dir.WaitSynced(ctx, r[0].Rev), "what the keeper says is not heard")
	if got := n.files(); len(got) != 0 {
		t.Errorf("written by a node that is not the keeper: %s", short(got))
	}
	f.Close()
	await(t, files{"minions/web": k[0]}, n)
}

// A node that is cut off lets go of the lock.
func TestKeeperWithoutAMajority(t *testing.T) {
	k := keyTexts()
	log := newShared(t)
	nodes := sharing(t, log, "m1", "m2")
	nodes[0].late.cutOff.Store(true)
	if _, err := log.Propose(t.Context(), []state.Command{state.KeySet{ID: "web", State: state.KeyAccepted,
		Pub: k[0]}}); err != nil {
		t.Fatal(err)
	}
	await(t, files{"minions/web": k[0]}, nodes...)
}

// Where the share was mounted anew, the lock that a keeper holds is not the one that others see: two would keep.
func TestKeeper_LockReplaced(t *testing.T) {
	k := keyTexts()
	log := newShared(t)
	nodes := sharing(t, log, "m1", "m2")
	lock := filepath.Join(nodes[0].pki, lockFile)
	require.NoError(t, os.Rename(lock, lock+".before"))
	patience.WaitFor(t, "m1 has given up", func() bool { return logged(nodes[0], errOtherLock.Error()) })
	patience.WaitFor(t, "there is a keeper again", func() bool {
		return logged(nodes[1], "manages the shared") || strings.Count(nodes[0].logs.String(), "manages the shared") > 1
	})
	nodes[0].put(acceptedDir, "web", k[0])
	await(t, files{"minions/web": k[0]}, nodes...)
}
