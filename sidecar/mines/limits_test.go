package mines_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/mines"
	"saltclusterd/sidecar/saltvalue"
	"saltclusterd/sidecar/saltwire"
)

// times is a list of n texts.
func times(n int, text func(i int) string) (out list) {
	for i := range n {
		out = append(out, text(i))
	}
	return out
}

func same(text string) func(int) string { return func(int) string { return text } }

func numbered(i int) string { return fmt.Sprint("f", i) }

// joined is a list as one text.
func joined(l list) string {
	var b strings.Builder
	for i, e := range l {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(e.(string))
	}
	return b.String()
}

// mineOf is a mine with n entries.
func mineOf(n int, value any) (out dict) {
	for i := range n {
		out = append(out, numbered(i), value)
	}
	return out
}

// allowing is a mine whose n entries are each for another target.
func allowing(n int) (out dict) {
	for i := range n {
		out = append(out, numbered(i), entry(i, "allow_tgt", fmt.Sprintf("m*%d", i)))
	}
	return out
}

// What costs too much is left to the master, and what is just below is answered.
func TestLimits(t *testing.T) {
	question := func(more ...any) dict { return load("_mine_get", "m1", more...) }
	list := "list"
	for _, c := range []struct {
		name   string
		mine   dict // m2's
		ask    dict
		python bool
	}{
		{name: "functions", ask: question("fun", times(1_000, numbered), "tgt", "m2")},
		{name: "too many functions", ask: question("fun", times(1_001, same("f")), "tgt", "m2"), python: true},
		{name: "functions in a text", ask: question("fun", joined(times(1_000, numbered)), "tgt", "m2")},
		{name: "too many functions in a text", ask: question("fun", strings.Repeat(",", 1_000), "tgt", "m2"), python: true},
		{name: "names", ask: question("fun", "f1", "tgt", times(20_000, same("m2")), "tgt_type", list)},
		{name: "too many names", ask: question("fun", "f1", "tgt", times(20_001, same("m2")), "tgt_type", list),
			python: true},
		{name: "names in a text", ask: question("fun", "f1", "tgt", joined(times(20_000, same("m2"))), "tgt_type", list)},
		{name: "too many names in a text", ask: question("fun", "f1", "tgt", strings.Repeat(",", 20_000), "tgt_type", list),
			python: true},
		{name: "glob", ask: question("fun", "f1", "tgt", strings.Repeat("*", 1<<10))},
		{name: "too long a glob", ask: question("fun", "f1", "tgt", strings.Repeat("*", 1<<10+1)), python: true},
		{name: "too large a load", ask: question("fun", "f1", "tgt", "m2", "more", strings.Repeat("x", 2<<20)), python: true},
		{name: "entries", mine: mineOf(20_000, 1), ask: question("fun", "f1", "tgt", "m2")},
		{name: "too many entries", mine: mineOf(20_001, 1), ask: question("fun", "f1", "tgt", "m2"), python: true},
		{name: "too large a mine", mine: mineOf(1, strings.Repeat("x", 4<<20)), ask: question("fun", "f1", "tgt", "m2"),
			python: true},
		{name: "an entry of many", mine: mineOf(1, mineOf(20_000, 1)), ask: question("fun", "f0", "tgt", "m2")},
		{name: "an entry of too many", mine: mineOf(1, mineOf(20_001, 1)), ask: question("fun", "f0", "tgt", "m2"),
			python: true},
		{name: "targets of entries", mine: allowing(256), ask: question("fun", times(300, numbered), "tgt", "m2")},
		{name: "too many targets of entries", mine: allowing(257), ask: question("fun", times(300, numbered), "tgt", "m2"),
			python: true},
		{
			name: "too many names in the target of an entry", python: true, ask: question("fun", "f0", "tgt", "m2"),
			mine: mineOf(1, entry(1, "allow_tgt", times(20_001, same("m1")), "allow_tgt_type", list)),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, options(t, "", 3007))
			if c.mine != nil {
				w.write(mineFile(3007, "m2"), appendAny(t, nil, c.mine, saltwire.Disk))
			}
			_, err := w.ask(c.ask)
			var python *saltvalue.NeedsPython
			if errors.As(err, &python) != c.python || !c.python && err != nil {
				t.Errorf("%v", err)
			}
		})
	}
}

// slow are keys whose list takes until it is released.
type slow struct {
	keys
	release chan struct{}
}

func (s slow) IDs() []string {
	<-s.release
	return s.keys
}

// A question that finds no place among those at work goes to the master while that has time to answer it.
func TestTooManyQuestions(t *testing.T) {
	c := options(t, "", 3006)
	require.NoError(t, os.MkdirAll(c.CacheDir, 0o755))
	set, reason := mines.Native(c, 3006)
	glob := wire(t, load("_mine_get", "m1", "fun", "f", "tgt", "*"))
	synctest.Test(t, func(t *testing.T) {
		k := slow{everybody, make(chan struct{})}
		s, err := mines.New(mines.Config{Store: &shelf{}, Keys: k})
		require.NoError(t, err)
		s.Use(set, reason)
		var wg sync.WaitGroup
		ask := func() {
			check.NoError(t, s.Answer(t.Context(), "_mine_get", "m1", glob, func([]byte) {}))
		}
		for range 4 {
			wg.Go(ask)
		}
		synctest.Wait()
		began := time.Now()
		err = s.Answer(t.Context(), "_mine_get", "m1", glob, func([]byte) { t.Error("answered") })
		var python *saltvalue.NeedsPython
		if took := time.Since(began); !errors.As(err, &python) || took != 2*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		wg.Go(ask)
		time.Sleep(time.Second) // of the bubble: it waits
		close(k.release)
		wg.Wait()
	})
}

// Many functions of a large mine are found as few of a small one are, the first of equal ones.
func TestManyOfMany(t *testing.T) {
	w := newWorld(t, options(t, "", 3007))
	w.write(mineFile(3007, "m2"), appendAny(t, nil, append(mineOf(5_000, 1), 5, "five", "f4", 2), saltwire.Disk))
	reply, err := w.ask(load("_mine_get", "m1", "fun",
		append(times(3, same("none")), times(3, func(i int) string { return numbered(i + 3) })...), "tgt", "*"))
	if want := wire(t, dict{"f3", dict{"m2", 1}, "f4", dict{"m2", 1}, "f5", dict{"m2", 1}}); err != nil ||
		string(reply) != string(want) {
		t.Errorf("%q, %v", reply, err)
	}
}

// Who may read an entry is decided once for all that say the same, by what they say and not by how.
func TestAllowed(t *testing.T) {
	for _, major := range []int{3006, 3008} {
		w := newWorld(t, options(t, "", major))
		w.write(mineFile(major, "m2"), appendAny(t, nil, dict{
			"glob", entry(1, "allow_tgt", "m*"), "again", entry(2, "allow_tgt", "m*"), "no", entry(3, "allow_tgt", "w*"),
			"list", entry(4, "allow_tgt", "m*", "allow_tgt_type", "list"), "id", entry(5, "allow_tgt", "m1"),
			"ids", entry(6, "allow_tgt", list{"m2", "m1"}, "allow_tgt_type", "list"), "nobody", entry(7, "allow_tgt", nil),
		}, saltwire.Disk))
		for minion, want := range map[string]dict{
			"m1":   {"glob", dict{"m2", 1}, "again", dict{"m2", 2}, "id", dict{"m2", 5}, "ids", dict{"m2", 6}},
			"web2": {"no", dict{"m2", 3}},
			"mx":   {}, // has no key
		} {
			names := list{"glob", "again", "no", "id", "ids", "nobody"}
			if major < 3008 { // else it may be the name of a resource
				names = append(names, "list")
			}
			reply, err := w.ask(load("_mine_get", minion, "fun", names, "tgt", "m2"))
			if err != nil || string(reply) != string(wire(t, want)) {
				t.Errorf("%d: %s hears %q, %v", major, minion, reply, err)
			}
		}
	}
}

// A write that is too large is left to the master.
func TestLargeLoad(t *testing.T) {
	s, err := mines.New(mines.Config{Store: &shelf{}, Keys: everybody})
	require.NoError(t, err)
	set, reason := mines.Native(options(t, "", 3006), 3006)
	s.Use(set, reason)
	for name, data := range map[string]dict{"large": {"f", strings.Repeat("x", 2<<20)}, "many": mineOf(20_001, 1)} {
		err := s.Answer(t.Context(), "_mine", "m1", wire(t, load("_mine", "m1", "data", data)),
			func([]byte) { t.Error("answered") })
		var python *saltvalue.NeedsPython
		if !errors.As(err, &python) {
			t.Errorf("too %s: %v", name, err)
		}
	}
}
