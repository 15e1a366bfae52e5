package replicatest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/fsync/feed"
	"saltclusterd/fsync/replica"
	"saltclusterd/gossip/node"
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

// cluster is members with stores of one sort.
type cluster struct {
	*testing.T
	*Net
	subject Subject
	members []*member
	settled int
}

type member struct {
	c     *cluster
	id    node.ID
	dir   string
	cfg   replica.Config
	store Store // nil: closed
}

// start makes n members.
func (c *cluster) start(n int) []*member {
	for range n {
		c.add(nil)
	}
	return c.members
}

// add makes a member; change may alter its configuration.
func (c *cluster) add(change func(*replica.Config)) *member {
	c.Helper()
	dir := c.TempDir()
	m := &member{c: c, id: node.ID(rune('a' + len(c.members))), dir: dir}
	m.cfg = c.Config(m.id, filepath.Join(dir, "state"))
	if change != nil {
		change(&m.cfg)
	}
	c.members = append(c.members, m)
	c.Cleanup(m.close)
	m.open()
	return m
}

func (m *member) open() {
	m.c.Helper()
	s, err := m.subject().New(m.cfg, m.dir, false)
	if err == nil {
		err = s.Open(context.Background())
	}
	if err != nil {
		m.c.Fatal(err)
	}
	m.store = s
	Eventually(m.c, "the first scan", s.Scanned)
	m.c.Join(m.id, s.Handler())
}

func (m *member) close() {
	if m.store == nil {
		return
	}
	m.c.Join(m.id, nil)
	if err := m.store.Close(); err != nil {
		m.c.Error(err)
	}
	m.store = nil
}

func (m *member) subject() Subject { return m.c.subject }

func (m *member) write(item, version int) {
	m.c.Helper()
	m.subject().Write(m.c, m.dir, m.store, item, version)
}

func (m *member) read(item int) int { return m.subject().Read(m.c, m.dir, item) }

// await waits until members have a version of an item.
func (c *cluster) await(item, version int, members ...*member) {
	c.Helper()
	for _, m := range members {
		Eventually(c, fmt.Sprintf("%s has version %d of item %d", m.id, version, item),
			func() bool { return m.read(item) == version })
	}
}

// settle waits until what members have sent and are about to send is everywhere: items that they write now are.
func (c *cluster) settle() {
	c.Helper()
	for _, m := range c.members {
		c.settled++
		item := 1000 + c.settled
		m.write(item, 1)
		c.await(item, 1, c.members...)
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
	Eventually(c, "the call failed", func() bool {
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

// remove removes an item where all have it.
func (c *cluster) remove(m *member, item int) {
	c.Helper()
	c.subject.Remove(c, m.dir, m.store, item)
	c.await(item, 0, m)
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

func (c *cluster) testReplay() {
	all := c.start(3)
	version := 1
	for i, m := range all {
		m.write(i, 1)
		c.await(i, 1, all...)
	}
	before := c.Sent()
	if c.subject.Traits().Replaces {
		version = 2
		for i, m := range all {
			m.write(i, 2)
			c.await(i, 2, all...)
		}
	}
	for range 2 {
		for _, b := range before {
			_, _ = c.Send(c.Context(), b.From, b.To, b.Bytes)
		}
		c.settle()
		for i := range all {
			for _, m := range all {
				if got := m.read(i); got != version {
					c.Fatalf("%s has version %d of item %d, not %d", m.id, got, i, version)
				}
			}
		}
	}
}

func (c *cluster) testMalformed() {
	all := c.start(2)
	all[0].write(0, 1)
	c.await(0, 1, all...)
	refused := func(what string, from node.ID, body []byte) {
		c.Helper()
		if _, err := c.Send(c.Context(), from, "b", body); err == nil {
			c.Errorf("%s is taken: %.60q", what, body)
		}
	}
	changed := func(b []byte, at int) []byte {
		b = slices.Clone(b)
		b[at] ^= 0x40
		return b
	}
	sent := c.Sent()
	c.Record(false)
	for _, b := range sent[:min(len(sent), 20)] {
		for n := 0; n < len(b.Bytes); n += 1 + len(b.Bytes)/200 {
			refused("a part", "a", b.Bytes[:n])
		}
		refused("more", "a", append(slices.Clone(b.Bytes), 0))
		for at := range 6 { // magic, version, kind
			refused("another format", "a", changed(b.Bytes, at))
		}
		refused("what a stranger sends", "", b.Bytes)
	}
	_, err := c.Send(c.Context(), "a", "b", make([]byte, c.subject.Traits().MaxBody+1))
	if err == nil || !strings.Contains(err.Error(), "too large") {
		c.Errorf("a body that is too large: %v", err)
	}
	all[0].write(1, 1)
	c.await(1, 1, all...)
	c.await(0, 1, all...)
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

// ask asks a member, whose connection breaks at that question; 0: never.
func (m *member) ask(from node.ID, breaks int64) replica.Ask {
	var asked atomic.Int64
	return func(ctx context.Context, q []byte) ([]byte, error) {
		if asked.Add(1) == breaks {
			return nil, errLost
		}
		return m.store.Answer(ctx, from, q)
	}
}

var errLost = errors.New("connection reset")

func (c *cluster) testPull() {
	const items = 4
	all := c.start(2)
	all[0].write(0, 1)
	c.await(0, 1, all...)
	for i := 1; i < items; i++ {
		all[0].write(i, 1)
	}
	for i := range items {
		c.await(i, 1, all[1])
	}
	hold := make(chan struct{})
	c.Cut("c", true) // the others' senders, which the daemon holds up
	joiner := c.add(func(cfg *replica.Config) { cfg.Hold = hold })
	done, total := 0, 0
	tell := func(d, n int) { done, total = d, n }
	if err := joiner.store.Pull(c.Context(), all[1].ask("c", 2), tell); !errors.Is(err, errLost) || total != items {
		c.Fatalf("%d of %d: %v", done, total, err)
	}
	if err := joiner.store.Pull(c.Context(), all[1].ask("c", 0), tell); err != nil || done != total {
		c.Fatalf("then %d of %d: %v", done, total, err)
	}
	for i := range items {
		if joiner.read(i) != 1 {
			c.Errorf("item %d is not there", i)
		}
	}
	if err := joiner.store.Pull(c.Context(), all[0].ask("c", 0), tell); err != nil || total != 0 {
		c.Errorf("%d are lacking still: %v", total, err)
	}
	if slices.ContainsFunc(c.Sent(), func(b Body) bool { return b.From == "c" }) {
		c.Error("it has sent before it caught up")
	}
	close(hold)
	c.Cut("c", false)
	c.settle()
	over, cancel := context.WithCancel(c.Context())
	cancel()
	if err := joiner.store.Pull(over, joiner.ask("c", 0), tell); err == nil {
		c.Error("it was not cancelled")
	}
}

func (c *cluster) testInvalidAnswers() {
	all := c.start(2)
	all[0].write(0, 1)
	c.await(0, 1, all...)
	news := c.Sent()[len(c.Sent())-1].Bytes
	for _, text := range [][]byte{nil, []byte("nonsense"), news[:4], append(slices.Clone(news), 0)} {
		asked := 0
		err := all[0].store.Pull(c.Context(), func(context.Context, []byte) ([]byte, error) {
			asked++
			return text, nil
		}, func(int, int) {})
		if err == nil || asked > 1 {
			c.Errorf("%.60q: %d questions, %v", text, asked, err)
		}
		if _, err := all[0].store.Answer(c.Context(), "b", text); err == nil {
			c.Errorf("%.60q is answered", text)
		}
	}
}

func (c *cluster) testPowerLoss() {
	all := c.start(3)
	for i, m := range all {
		m.write(i, 1)
		c.await(i, 1, all...)
	}
	for _, m := range all[:2] { // all that know of it, but one
		m.close()
		c.subject.Spoil(c, m.dir, 0)
		c.subject.Spoil(c, m.dir, 1)
	}
	for _, m := range all[:2] {
		m.open()
	}
	for i := range all {
		c.await(i, 1, all...)
	}
	c.settle()
	lost := all[1]
	lost.close()
	table := filepath.Join(lost.cfg.StateDir, c.subject.Traits().Table)
	info, err := os.Stat(table)
	if err == nil {
		err = os.Truncate(table, info.Size()/2)
	}
	if err != nil {
		c.Fatal(err)
	}
	lost.open()
	c.settle()
	for i := range all {
		c.await(i, 1, all...)
	}
}

func (c *cluster) testNewerTable() {
	traits := c.subject.Traits()
	m := c.start(1)[0]
	m.write(0, 1)
	m.close()
	table := filepath.Join(m.cfg.StateDir, traits.Table)
	if err := os.WriteFile(table, traits.Newer, 0o600); err != nil {
		c.Fatal(err)
	}
	if traits.Disposable {
		m.open()
		c.await(0, 1, m)
		return
	}
	s, err := c.subject.New(m.cfg, m.dir, false)
	if err != nil {
		c.Fatal(err)
	}
	if err := s.Open(c.Context()); !errors.Is(err, replica.ErrNewer) {
		c.Errorf("error %v", err)
	}
	if now, err := os.ReadFile(table); err != nil || string(now) != string(traits.Newer) {
		c.Errorf("the table became %q, %v", now, err)
	}
}

func (c *cluster) testLost() {
	all := c.start(3)
	all[0].write(0, 1)
	c.await(0, 1, all...)
	c.settle()
	for _, m := range []*member{all[0], all[2]} {
		c.subject.Lose(c, m.dir)
		c.await(0, 1, all...)
	}
	all[1].close()
	c.subject.Lose(c, all[1].dir)
	all[1].open()
	c.await(0, 1, all...)
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
	Eventually(c, "c takes what it is sent", func() bool {
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
	Eventually(c, "it has all", func() bool {
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
