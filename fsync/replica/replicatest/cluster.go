package replicatest

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"saltclusterd/fsync/replica"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/patience"
)

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
	patience.WaitFor(m.c, "the first scan", s.Scanned)
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
		patience.WaitFor(c, fmt.Sprintf("%s has version %d of item %d", m.id, version, item),
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

// remove removes an item where all have it.
func (c *cluster) remove(m *member, item int) {
	c.Helper()
	c.subject.Remove(c, m.dir, m.store, item)
	c.await(item, 0, m)
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
