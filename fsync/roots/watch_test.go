package roots

import "testing"

// Without hints of the kernel changes are found all the same, by looking.
func TestWithoutHints(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a"), w.start("b")
	a.cfg.Timing.Poll = a.cfg.Timing.Retry
	store, err := New(a.cfg)
	if err != nil {
		t.Fatal(err)
	}
	store.blind = true
	a.openStore(store)
	a.write("deep/in/here", "1")
	w.await("b has it", func() bool { return b.has("deep/in/here", "1") })
	a.write("deep/in/here", "2")
	w.await("b has the edit", func() bool { return b.has("deep/in/here", "2") })
	if a.store.Status().Watching {
		t.Error("it says that it gets hints")
	}
}
