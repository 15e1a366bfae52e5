package jobs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"saltclusterd/fsync/ledger"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// differences compares the ledgers of nodes; it is an error when something moves.
func differences(rules ledger.Rules, nodes ...*testNode) ([]ledger.Difference, error) {
	all := map[string]ledger.Ledger{}
	for _, n := range nodes {
		l, err := n.store.Ledger()
		if err != nil {
			return nil, err
		}
		for jid, text := range l.Items {
			if text == ledger.Moving {
				return nil, fmt.Errorf("%s moves on %s", jid, n.id)
			}
		}
		all[string(n.id)] = l
	}
	return rules.Compare(all), nil
}

// settled waits until nothing moves.
func settled(t *testing.T, rules ledger.Rules, nodes ...*testNode) (found []ledger.Difference) {
	t.Helper()
	patience.WaitNil(t, func() (err error) {
		found, err = differences(rules, nodes...)
		return err
	})
	return found
}

func TestLedger(t *testing.T) {
	w := newWorld(t)
	change := func(c *Config) { c.Timing.Scan = time.Hour } // nothing is repaired meanwhile
	a, b := w.add("a", change), w.add("b", change)
	few, many := w.jid(), w.jid()
	for jid, n := range map[string]int{few: 2, many: maxRead + 1} {
		a.publish(jid, "m1")
		for i := range n {
			a.ret(jid, fmt.Sprint("m", i), "one")
		}
		same(t, jid, n+3, a, b)
	}
	w.quiet()
	if found := settled(t, ledger.Rules{}, a, b); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	file := func(jid string) string { return filepath.Join(b.store.disk.path(jid), "m1", returnFile) }
	for _, c := range []struct {
		what, jid string
		damage    func() error
	}{
		{"content", few, func() error { return os.WriteFile(file(few), ret("ona"), 0o644) }},
		{"size", many, func() error { return os.Truncate(file(many), 1) }},
	} {
		path := file(c.jid)
		raw, err := os.ReadFile(path)
		if err == nil {
			err = errors.Join(os.Remove(path), os.WriteFile(path, raw, 0o644)) // it may share its bytes with others
		}
		if err == nil {
			err = c.damage()
		}
		require.NoError(t, err)
		found := settled(t, ledger.Rules{}, a, b)
		if len(found) != 1 || found[0].Item != c.jid || found[0].Texts["a"] == found[0].Texts["b"] {
			t.Errorf("%s: %+v", c.what, found)
		}
		require.NoError(t, os.WriteFile(path, raw, 0o644))
	}
	if found := settled(t, ledger.Rules{}, a, b); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

// A job whose returns come in is no difference, whoever has how many; nor one that a master has removed or will soon.
func TestLedger_MovingAndRemoved(t *testing.T) {
	w := newWorld(t)
	const keep = time.Hour
	a := w.add("a", nil)
	b := w.add("b", func(c *Config) { c.Master.Keep = keep; c.Timing.Rest = time.Hour })
	jid, removed, late := w.jid(), w.jid(), w.jid()
	for _, jid := range []string{jid, removed, late} {
		a.publish(jid, "m1")
		same(t, jid, 3, a, b)
	}
	w.quiet()
	b.date(removed, time.Now().Add(-keep))
	b.clean(removed)
	b.remove(late)
	a.date(late, time.Now().Add(-keep*17/20))
	patience.WaitNil(t, func() error { // the store takes notice
		if _, there := b.store.index.known(removed); there {
			return errors.New("not seen")
		}
		return nil
	})
	l, err := b.store.Ledger()
	if err != nil || l.Items[jid] != ledger.Moving || l.Items[removed] != ledger.Removed || l.Since == 0 {
		t.Fatalf("%+v, %v", l, err)
	}
	patience.WaitNil(t, func() error {
		la, err := a.store.Ledger()
		if err != nil {
			return err
		}
		lb, err := b.store.Ledger()
		if found := ledger.Compare(map[string]ledger.Ledger{"a": la, "b": lb}); err == nil && len(found) > 0 {
			err = fmt.Errorf("%+v", found)
		}
		return err
	})
}

// Five nodes, of which three keep a job: the others fetch it, also when its publisher is gone; copies that nobody needs
// are no difference unless they know more.
func TestFiveNodesThreeReplicas(t *testing.T) {
	w := newWorld(t)
	replicas := func(string) []node.ID { return []node.ID{"c", "d", "e"} }
	needs := func(id, jid string) bool { return slices.Contains(replicas(jid), node.ID(id)) }
	rules := ledger.Rules{Needs: needs, More: More}
	var all []*testNode
	for _, id := range []node.ID{"a", "b", "c", "d", "e"} {
		all = append(all, w.add(id, func(c *Config) { c.Replicas = replicas }))
	}
	a, b := all[0], all[1]
	jid := w.jid()
	a.publish(jid, "m1", "m2")
	a.ret(jid, "m1", "one")
	same(t, jid, 4, a, all[2], all[3], all[4])
	w.quiet()
	if got := b.content(jid); len(got) > 0 {
		t.Errorf("b has %v", got)
	}
	if found := settled(t, rules, all...); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	w.setDown("a", true)
	a.ret(jid, "m2", "two") // nobody hears of it
	found := settled(t, rules, all...)
	if len(found) != 1 || found[0].Texts["a"] == found[0].Texts["c"] || found[0].Texts["b"] != "" ||
		len(found[0].Lacking) > 0 {
		t.Errorf("%+v", found)
	}
	w.remove("a")
	if found := settled(t, rules, all[1:]...); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	got, err := b.store.Find(t.Context(), jid)
	if err != nil || got.From != "c" || string(got.Returns["m1"].Data) != string(ret("one")) ||
		len(got.Heads[loadFile]) == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	w.setDown("c", true)
	if got, err = b.store.Find(t.Context(), jid); err != nil || got.From != "d" {
		t.Errorf("%+v, %v", got, err)
	}
	list, silent := b.store.List(t.Context(), 5)
	if len(list) != 1 || list[0].JID != jid || list[0].Target != "*" || list[0].User != "root" ||
		len(list[0].Nodes) != 2 || !slices.Equal(silent, []node.ID{"c"}) {
		t.Errorf("%+v, silent %v", list, silent)
	}
}
