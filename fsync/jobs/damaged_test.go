package jobs

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// A return that a power loss has spoilt on one master comes back from another. One that is whole never changes, and
// where it is not likely that a power loss was at work, only an empty file is none.
func TestDamagedReturns(t *testing.T) {
	outOf := []byte{0xa6, 'n', 'e', 's', 't', 'e', 'd'}
	zeros := func(b []byte) []byte { return make([]byte, len(b)) }
	for _, c := range []struct {
		name   string
		file   string
		damage func([]byte) []byte
		after  time.Duration // that the machine started after the file was written
		mended bool
	}{
		{"empty", returnFile, func([]byte) []byte { return nil }, -time.Hour, true},
		{"cut off", returnFile, short, time.Minute, true},
		{"zeros", returnFile, zeros, time.Minute, true},
		{"an empty outputter", outFile, func([]byte) []byte { return nil }, time.Minute, true},
		{"zeros since the start", returnFile, zeros, -time.Minute, false},
		{"zeros long before", returnFile, zeros, time.Hour, false},
		{"another, but whole", returnFile, func([]byte) []byte { return ret("another") }, time.Minute, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			a, b := w.add("a", nil), w.add("b", nil)
			jid := w.jid()
			a.publish(jid, "m1", "m2")
			a.python(jid, "m1/"+outFile, outOf)
			a.python(jid, "m1/"+returnFile, ret("one"))
			a.store.Stored(jid, "m1", Return{ret("one"), outOf}, false)
			a.ret(jid, "m2", "one")
			same(t, jid, 6, a, b)
			w.quiet()
			path := filepath.Join(a.store.disk.path(jid), "m1", c.file)
			var want []byte
			w.restart(func() {
				raw, err := os.ReadFile(path)
				require.NoError(t, err)
				want = raw
				if !c.mended {
					want = c.damage(raw)
				}
				require.NoError(t, os.Remove(path)) // it may be b's, or m2's, by another name
				require.NoError(t, os.WriteFile(path, c.damage(raw), 0o644))
				a.cfg.Master.Booted = time.Now().Add(c.after)
			})
			if c.mended {
				same(t, jid, 6, b, a)
			}
			later := w.jid()
			a.publish(later, "m1")
			same(t, later, 3, a, b)
			w.quiet()
			for _, n := range []*testNode{a, b} {
				if n == b && !c.mended {
					continue
				}
				got, err := os.ReadFile(filepath.Join(n.store.disk.path(jid), "m1", c.file))
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s: %q, %v; not %q", n.id, got, err, want)
				}
			}
		})
	}
}

// What is damaged everywhere stays so and takes no return's place; verify says what it is.
func TestDamagedEverywhere(t *testing.T) {
	w := newWorld(t)
	a, b := w.add("a", nil), w.add("b", nil)
	jid := w.jid()
	a.publish(jid, "m1")
	a.ret(jid, "m1", "one")
	same(t, jid, 4, a, b)
	w.quiet()
	w.restart(func() {
		for _, n := range []*testNode{a, b} {
			require.NoError(t, os.WriteFile(filepath.Join(n.store.disk.path(jid), "m1", returnFile), nil, 0o644))
		}
	})
	c := w.add("c", nil)
	same(t, jid, 3, c)
	w.quiet()
	patience.WaitNil(t, func() error {
		for _, n := range []*testNode{a, b} {
			l, err := n.store.Ledger()
			if err != nil {
				return err
			}
			if text := l.Items[jid]; !bytes.HasSuffix([]byte(text), []byte(", 1 damaged")) {
				return &os.PathError{Op: "ledger", Path: text, Err: os.ErrInvalid}
			}
		}
		return nil
	})
	fd, err := a.store.disk.openJob(jid, time.Now().UnixNano(), false)
	require.NoError(t, err)
	f := os.NewFile(uintptr(fd), jid)
	defer f.Close()
	if isNew, mended, err := a.store.disk.putReturn(fd, &record{name: "m1", ret: true, data: short(ret("one"))},
		recentReturns{}); isNew || mended || err != nil {
		t.Errorf("half a return took the place of an empty one: %v %v", mended, err)
	}
}

func short(b []byte) []byte { return b[:len(b)-1] }
