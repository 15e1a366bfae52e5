package replicatest

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"saltclusterd/fsync/feed"
	"saltclusterd/fsync/replica"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/patience"
)

// Store is a store of any sort.
type Store interface {
	Open(ctx context.Context) error
	Close() error
	Off() string
	Scanned() bool
	Handler() http.Handler
	Pull(ctx context.Context, ask replica.Ask, tell func(done, total int)) error
	Answer(ctx context.Context, from node.ID, question []byte) ([]byte, error)
	Progress() []feed.Progress
	Peers() []replica.PeerStatus
}

// Subject makes stores of one sort, and does what local masters do to their files. It belongs to one cluster.
type Subject interface {
	// New makes a member's store. The files of its master are below dir.
	New(cfg replica.Config, dir string, off bool) (Store, error)
	// Write writes version 1 or 2 of an item, of the given number. The store, if there is one, learns of it as it does of
	// what a master writes.
	Write(t testing.TB, dir string, s Store, item, version int)
	// Read returns the version of an item that the master of dir has; 0: none.
	Read(t testing.TB, dir string, item int) int
	// Remove removes an item for good.
	Remove(t testing.TB, dir string, s Store, item int)
	// Spoil makes a file of an item what a power loss makes of it.
	Spoil(t testing.TB, dir string, item int)
	// Lose removes the directory of all items.
	Lose(t testing.TB, dir string)
	Traits() Traits
}

// Traits are what differs between stores.
type Traits struct {
	Replaces   bool   // version 2 of an item replaces version 1 everywhere
	Local      bool   // what is removed stays away from that member only
	MaxBody    int    // bytes of a body
	Table      string // the table's file
	Newer      []byte // one that a newer version has written
	Disposable bool   // that is done without
}

// Run tests what every store promises. Each case has a cluster of its own.
func Run(t *testing.T, subject func() Subject) {
	for _, c := range []struct {
		name string
		test func(*cluster)
	}{
		{"ItemsAreEverywhere", (*cluster).testSpread},
		{"MemberWasAway", (*cluster).testAway},
		{"MemberCannotBeReached", (*cluster).testUnreachable},
		{"Restart", (*cluster).testRestart},
		{"RemovedWhileAway", (*cluster).testRemoved},
		{"RepeatedAndOlderBodies", (*cluster).testReplay},
		{"MalformedBodies", (*cluster).testMalformed},
		{"ClosedStoreWritesNothing", (*cluster).testClosed},
		{"PullResumes", (*cluster).testPull},
		{"InvalidAnswers", (*cluster).testInvalidAnswers},
		{"PowerLoss", (*cluster).testPowerLoss},
		{"TableOfNewerVersion", (*cluster).testNewerTable},
		{"DirectoryLost", (*cluster).testLost},
		{"Off", (*cluster).testOff},
		{"Progress", (*cluster).testProgress},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := &cluster{T: t, Net: NewNet(), subject: subject()}
			n.Record(true)
			c.test(n)
		})
	}
}

func (c *cluster) testSpread() {
	all := c.start(3)
	for i, m := range all {
		m.write(i, 1)
	}
	for i := range all {
		c.await(i, 1, all...)
	}
	if !c.subject.Traits().Replaces {
		return
	}
	all[2].write(0, 2)
	c.await(0, 2, all...)
}

func (c *cluster) testAway() {
	all := c.start(3)
	away := all[2]
	all[0].write(0, 1)
	c.await(0, 1, all...)
	away.close()
	all[0].write(1, 1)
	c.await(1, 1, all[1])
	away.write(2, 1) // its master runs all the same
	away.open()
	c.await(1, 1, all...)
	c.await(2, 1, all...)
	all = append(all, c.add(nil)) // what joins gets everything
	for i := range 3 {
		c.await(i, 1, all...)
	}
}

func (c *cluster) testUnreachable() {
	all := c.start(3)
	c.Cut("c", true)
	all[0].write(0, 1)
	all[2].write(1, 1)
	c.await(0, 1, all[1])
	patience.WaitFor(c, "the call failed", func() bool {
		return slices.ContainsFunc(all[0].store.Peers(), func(p replica.PeerStatus) bool { return p.ID == "c" && p.Err != "" })
	})
	if all[2].read(0) != 0 {
		c.Error("it was reached")
	}
	c.Cut("c", false)
	c.await(0, 1, all...)
	c.await(1, 1, all...)
}

func (c *cluster) testRestart() {
	all := c.start(2)
	all[0].write(0, 1)
	all[1].write(1, 1)
	c.await(0, 1, all...)
	c.await(1, 1, all...)
	for range 2 {
		for _, m := range all {
			m.close()
		}
		for _, m := range all {
			m.open()
		}
		c.settle()
		c.await(0, 1, all...)
		c.await(1, 1, all...)
	}
}

func (c *cluster) testRemoved() {
	all := c.start(3)
	for i := range 2 {
		all[0].write(i, 1)
		c.await(i, 1, all...)
	}
	gone := all
	if c.subject.Traits().Local {
		gone = all[1:2]
	}
	all[2].close()
	c.remove(all[1], 0)
	if len(gone) > 1 {
		c.await(0, 0, all[:2]...)
	}
	before := c.Sent()
	all[2].open()
	for range 2 {
		c.settle()
		c.await(0, 0, gone...)
		c.await(1, 1, all...)
		for _, b := range before { // what members have said of it does not bring it back, not even for a moment
			_, _ = c.Send(c.Context(), b.From, b.To, b.Bytes)
			for _, m := range gone {
				if m.id == b.To && m.read(0) != 0 {
					c.Fatalf("%s has it again", m.id)
				}
			}
		}
	}
	for _, m := range all {
		m.close()
	}
	for _, m := range all {
		m.open()
	}
	c.settle()
	c.await(0, 0, gone...)
	c.await(1, 1, all...)
}

func (c *cluster) testClosed() {
	all := c.start(3)
	c.Cut("b", true)
	all[0].write(0, 1)
	c.await(0, 1, all[2])
	bodies := c.Sent()
	h := all[1].store.Handler()
	all[1].close()
	for _, b := range bodies {
		if b.To == "c" {
			_, _ = Serve(c.Context(), h, b.From, b.Bytes)
		}
	}
	if all[1].read(0) != 0 {
		c.Error("a closed store has written")
	}
}

func (c *cluster) testOff() {
	all := c.start(2)
	off, err := c.subject.New(c.Config("c", c.TempDir()), c.TempDir(), true)
	if err == nil {
		err = off.Open(c.Context())
	}
	if err != nil {
		c.Fatal(err)
	}
	c.Join("c", off.Handler())
	if off.Off() == "" {
		c.Error("no reason is given")
	}
	all[0].write(0, 1)
	c.settle()
	patience.WaitFor(c, "c takes what it is sent", func() bool {
		return !slices.ContainsFunc(all[0].store.Peers(), func(p replica.PeerStatus) bool { return p.Pending > 0 || p.Err != "" })
	})
	if err := off.Pull(c.Context(), nil, nil); err != nil {
		c.Error(err)
	}
	asker := &member{store: off}
	if err := all[0].store.Pull(c.Context(), asker.ask("a", 0), func(_, total int) {
		if total != 0 {
			c.Errorf("it offers %d", total)
		}
	}); err != nil {
		c.Error(err)
	}
	if err := off.Close(); err != nil {
		c.Error(err)
	}
}

func (c *cluster) testProgress() {
	all := c.start(2)
	for i := range 5 {
		all[0].write(i, 1)
	}
	c.settle()
	joiner := c.add(nil)
	patience.WaitFor(c, "it has all", func() bool {
		p := joiner.store.Progress()
		return len(p) == 2 && !slices.ContainsFunc(p, func(p feed.Progress) bool { return !p.Done() || p.Told < 5 })
	})
	for i := range 5 {
		if joiner.read(i) != 1 {
			c.Errorf("item %d is not there", i)
		}
	}
}

// Quick is a pace for tests.
func Quick() replica.Pace {
	return replica.Pace{
		Settle: time.Millisecond, Digest: 50 * time.Millisecond, Save: 5 * time.Millisecond, Retry: time.Millisecond,
		RetryMax: 20 * time.Millisecond, Call: 10 * time.Second,
	}
}
