package replicatest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"saltclusterd/fsync/replica"
	"saltclusterd/gossip/node"
)

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
