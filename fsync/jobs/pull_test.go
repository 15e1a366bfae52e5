package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/gossip/node"
)

func (n *testNode) answer(from node.ID, breaks int) Ask {
	var asked atomic.Int64
	return func(ctx context.Context, q []byte) ([]byte, error) {
		if asked.Add(1) == int64(breaks) {
			return nil, errors.New("connection reset")
		}
		return n.store.Answer(ctx, from, q)
	}
}

// Who joins or comes back pulls the jobs it lacks, or lacks something of; what its own retention removed stays away.
func TestPull(t *testing.T) {
	w := newWorld(t)
	a, b := w.add("a", nil), w.add("b", nil)
	var jids []string
	for range 6 {
		jid := w.jid()
		a.publish(jid, "m1", "m2")
		a.ret(jid, "m1", "one")
		same(t, jid, 4, a, b)
		jids = append(jids, jid)
	}
	b.close()
	a.ret(jids[0], "m2", "two")
	last := w.jid()
	a.publish(last, "m1")
	w.setDown("b", true) // the others' senders, which the daemon holds up
	hold := make(chan struct{})
	b.cfg.Hold = hold
	b.open()
	eventually(t, func() error {
		if j, ok := a.store.index.fresh(last); !ok || j.stale {
			return fmt.Errorf("a does not know its last job")
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done, total := 0, 0
	tell := func(d, n int) { done, total = max(done, d), n }
	if err := b.store.Pull(ctx, a.answer("b", 2), tell); err == nil {
		t.Fatal("it did not break off")
	}
	if err := b.store.Pull(ctx, a.answer("b", 0), tell); err != nil {
		t.Fatal(err)
	}
	if total != 1 || done != 1 { // the other one came before it broke off
		t.Errorf("%d of %d", done, total)
	}
	if got := b.content(jids[0]); len(got) != 5 {
		t.Errorf("%v", got)
	}
	if got := b.content(last); len(got) != 3 {
		t.Errorf("%v", got)
	}
	if err := b.store.Pull(ctx, a.answer("b", 0), tell); err != nil || total != 0 {
		t.Errorf("again %d: %v", total, err)
	}
	close(hold)
}

// Jobs that a node shall not have are not offered to it.
func TestPullOfReplicasOnly(t *testing.T) {
	w := newWorld(t)
	only := func(c *Config) { c.Replicas = func(string) []node.ID { return []node.ID{"a"} } }
	a := w.add("a", only)
	jid := w.jid()
	a.publish(jid, "m1")
	eventually(t, func() error {
		if _, ok := a.store.index.fresh(jid); !ok {
			return errors.New("not known")
		}
		return nil
	})
	var raw []byte
	eventually(t, func() (err error) {
		raw, err = a.store.Answer(t.Context(), "b", encodeList(10)) // refused until it has looked at its disk
		return err
	})
	if m, err := decode(raw); err != nil || len(m.digest.jobs) != 0 {
		t.Errorf("%+v, %v", m, err)
	}
	for _, q := range [][]byte{nil, []byte("scjb"), encodeRecords(nil)} {
		if _, err := a.store.Answer(t.Context(), "b", q); err == nil {
			t.Errorf("%q is answered", q)
		}
	}
}
