package datacache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/gossip/node"
)

// ask makes the way to another node's Answer, which breaks off after so many questions; 0: it does not.
func (n *testNode) ask(breaks int) Ask {
	var asked atomic.Int64
	return func(ctx context.Context, q []byte) ([]byte, error) {
		if asked.Add(1) == int64(breaks) {
			return nil, errors.New("connection reset")
		}
		return n.store.Answer(ctx, q)
	}
}

func (w *world) cut(id node.ID, down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down[id] = down
}

// A node that comes back pulls what it lacks, and nothing else; a pull that breaks off goes on with the rest.
func TestPull(t *testing.T) {
	for _, k := range []Kind{Data, Mine} {
		t.Run(k.String(), func(t *testing.T) { testPull(t, k) })
	}
}

func testPull(t *testing.T, k Kind) {
	w, a, b, c := threeOf(t, k)
	const minions = maxRecords + 10
	put := func(n *testNode, id, what string) {
		if k == Data {
			n.stock(id, texts("os", what), texts("role", what))
		} else {
			n.file("minions/"+id+"/mine.p", texts("f", what))
		}
		n.store.Touched(id)
	}
	has := func(n *testNode, id, what string) bool {
		g, p := n.has(id)
		if k == Mine {
			return bytes.Equal(g, texts("f", what))
		}
		return bytes.Equal(g, texts("os", what)) && bytes.Equal(p, texts("role", what))
	}
	id := func(i int) string { return fmt.Sprintf("web%04d", i) }
	for i := range minions {
		w.setKey(id(i), "key")
	}
	put(a, id(0), "old")
	w.poll("c has the first", func() bool { return has(c, id(0), "old") })
	c.close()
	for i := range minions {
		put(a, id(i), "new")
	}
	w.poll("b has all", func() bool { return b.store.Status().Minions == minions && has(b, id(0), "new") })

	w.cut("c", true) // the others' senders, which the daemon holds up
	c.hold = make(chan struct{})
	c.open()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done, total := 0, 0
	tell := func(d, n int) { done, total = max(done, d), n }
	if err := c.store.Pull(ctx, b.ask(3), tell); err == nil {
		t.Fatal("it did not break off")
	}
	if total != minions || done >= minions {
		t.Fatalf("%d of %d", done, total)
	}
	done = 0
	if err := c.store.Pull(ctx, b.ask(0), tell); err != nil {
		t.Fatal(err)
	}
	if done != total || total >= minions || total == 0 {
		t.Errorf("second time %d of %d", done, total)
	}
	for i := range minions {
		if !has(c, id(i), "new") {
			t.Errorf("%s is not there", id(i))
		}
	}
	if err := c.store.Pull(ctx, a.ask(0), tell); err != nil || total != 0 {
		t.Errorf("third time %d: %v", total, err)
	}
	close(c.hold)
	w.cut("c", false)
}

// Who has nothing to say, or is not asked properly, says so.
func TestAnswer(t *testing.T) {
	_, a, _, _ := three(t)
	for _, q := range [][]byte{nil, []byte("scmd"), encodeRecords(Data, nil)} {
		if _, err := a.store.Answer(t.Context(), q); err == nil {
			t.Errorf("%q is answered", q)
		}
	}
	off := &Store{off: "for the test"}
	raw, err := off.Answer(t.Context(), encodeDigest(digest{ranged: true}))
	if m, bad := decode(Data, raw); err != nil || bad != nil || m.digest == nil || len(m.digest.stamps) > 0 ||
		m.digest.to != "" {
		t.Errorf("%q, %v, %v", raw, err, bad)
	}
}

// Answers that no node would give end a pull, and do no harm.
func TestPullOfNonsense(t *testing.T) {
	w, _, _, c := three(t)
	w.setKey("web1", "key")
	offer := encodeDigest(digest{ranged: true, stamps: []stamped{{"web1", 7}}})
	for name, answers := range map[string][][]byte{
		"garbage":              {[]byte("x")},
		"records for an offer": {encodeRecords(Data, nil)},
		"an offer for records": {offer, offer},
		"a range that stays": {encodeDigest(digest{ranged: true, to: "b"}),
			encodeDigest(digest{ranged: true, from: "b", to: "b"})},
		"a record nobody wanted": {offer, encodeRecords(Data,
			[]record{{id: "web2", stamp: 7, key: fingerprint("key"), data: data{main: texts("a", "b")}}})},
		"an offer without range ": {encodeDigest(digest{stamps: []stamped{{"web1", 7}}})},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			err := c.store.Pull(t.Context(), func(context.Context, []byte) ([]byte, error) {
				n++
				return answers[min(n, len(answers))-1], nil
			}, func(int, int) {})
			if !errors.Is(err, errWire) || n > 3 {
				t.Errorf("%d questions: %v", n, err)
			}
		})
	}
	if g, _ := c.has("web2"); g != nil {
		t.Error("written")
	}
}

// More ids than an answer holds come in several.
func TestOfferInParts(t *testing.T) {
	s := &Store{table: map[string]entry{}}
	for i := range maxDigest + 5 {
		s.table[fmt.Sprintf("m%06d", i)] = entry{Stamp: 2}
	}
	first := s.offer(digest{ranged: true})
	if len(first.stamps) != maxDigest || first.to != first.stamps[maxDigest-1].id {
		t.Fatalf("%d to %q", len(first.stamps), first.to)
	}
	second := s.offer(digest{ranged: true, from: first.to})
	if len(second.stamps) != 5 || second.to != "" {
		t.Errorf("%d to %q", len(second.stamps), second.to)
	}
	if d := s.digestFrom("", 3); len(d.stamps) != 3 || d.to != "m000002" {
		t.Errorf("%+v", d)
	}
}
