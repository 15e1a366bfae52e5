package jobs

import (
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/integration/require"
)

// A return that is there ahead of its publisher says so wherever it goes, by stream or by comparison, but not where it
// was taken.
func TestAhead(t *testing.T) {
	w := newWorld(t)
	a, b := w.add("a", nil), w.add("b", nil)
	jid := w.jid()
	a.publish(jid, "m1", "m2")
	b.ret(jid, "m1", "one")
	same(t, jid, 4, a, b)
	w.setDown("a", true)
	data := ret("two")
	b.python(jid, "m2/"+AheadFile, nil)
	b.python(jid, "m2/"+returnFile, data)
	b.store.Stored(jid, "m2", Return{Data: data}, true)
	c := w.add("c", nil)
	same(t, jid, 6, b, c)
	a.python(jid, "m2/"+returnFile, data) // which it took by itself
	w.setDown("a", false)
	w.quiet()
	same(t, jid, 5, a, b, c)

	half := w.jid()
	a.publish(half, "m1")
	same(t, half, 3, a, b, c)
	require.NoError(t, os.Mkdir(filepath.Join(a.store.disk.path(half), "m1"), 0o755)) // by a master that was killed
	b.python(half, "m1/"+AheadFile, nil)
	b.python(half, "m1/"+returnFile, data)
	b.store.Stored(half, "m1", Return{Data: data}, true)
	same(t, half, 5, b, a, c)

	early := w.jid()
	a.publish(early, "m1")
	same(t, early, 3, a, b, c)
	c.python(early, "m1/"+AheadFile, nil) // of one that was killed before it wrote the return
	a.ret(early, "m1", "one")
	same(t, early, 4, a, b, c)

	told := w.jid()
	a.publish(told, "m1")
	b.python(told, "m1/"+AheadFile, nil)
	b.python(told, "m1/"+returnFile, data)
	b.store.Stored(told, "m1", Return{Data: data}, true)
	same(t, told, 5, b, a, c)
	require.NoError(t, os.Remove(filepath.Join(a.store.disk.path(told), "m1", AheadFile))) // it takes it
	a.store.Stored(told, "m1", Return{Data: data}, false)
	same(t, told, 4, a, b, c)
}
