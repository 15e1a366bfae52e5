package tokens

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

func (n *testNode) ask(ctx context.Context, q []byte) ([]byte, error) { return n.store.Answer(ctx, q) }

// Who comes back gets what was made and what was revoked meanwhile before anybody asks it.
func TestPull(t *testing.T) {
	w, a, b, c := three(t)
	w.everywhere(secret(0), a.mint(secret(0), time.Hour))
	c.close()
	if err := os.Remove(b.path(secret(0))); err != nil {
		t.Fatal(err)
	}
	w.poll("revoked on a", func() bool { return a.has(secret(0)) == nil })
	made := a.mint(secret(1), time.Hour)
	w.poll("made on b", func() bool { return b.has(secret(1)) != nil })
	w.mu.Lock()
	w.down["c"] = true // the others' senders, which the daemon holds up
	w.mu.Unlock()
	c.hold = make(chan struct{})
	c.open()
	done, total := 0, 0
	if err := c.store.Pull(t.Context(), b.ask, func(d, n int) { done, total = d, n }); err != nil {
		t.Fatal(err)
	}
	if c.has(secret(0)) != nil || string(c.has(secret(1))) != string(made) || done != 2 || total != 2 {
		t.Errorf("%d of %d; revoked: %q; made: %q", done, total, c.has(secret(0)), c.has(secret(1)))
	}
	if err := c.store.Pull(t.Context(), a.ask, func(d, n int) { done, total = d, n }); err != nil || total != 0 {
		t.Errorf("again %d: %v", total, err)
	}
	close(c.hold)
}

// What nobody would answer ends it.
func TestPullOfNonsense(t *testing.T) {
	_, a, _, c := three(t)
	for _, q := range [][]byte{nil, []byte("sctk"), message{}.encode()} {
		if _, err := a.store.Answer(t.Context(), q); err == nil {
			t.Errorf("%q is answered", q)
		}
	}
	for _, answer := range [][]byte{nil, []byte("nonsense"), append(message{digest: true}.encode(), 1)} {
		err := c.store.Pull(t.Context(), func(context.Context, []byte) ([]byte, error) { return answer, nil },
			func(int, int) {})
		if err == nil {
			t.Errorf("%q is taken", answer)
		}
	}
	lost := errors.New("connection reset")
	if err := c.store.Pull(t.Context(), func(context.Context, []byte) ([]byte, error) { return nil, lost },
		func(int, int) {}); !errors.Is(err, lost) {
		t.Error(err)
	}
}
