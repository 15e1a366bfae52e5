package consensus

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func recovery(id node.ID) state.Recovery {
	return state.Recovery{Survivor: member(id), GossipKey: state.SecretText(strings.Repeat("n", 32))}
}

var discard = slog.New(slog.DiscardHandler)

// The last one of three goes on alone with all it knew, and takes in a new member.
func TestRecover(t *testing.T) {
	c := form(t, 3, nil)
	c.must(c.nodes["m1"], state.KeySet{ID: "a", State: state.KeyAccepted, Pub: "P"})
	c.eventually("m3 knows the key", func() (bool, string) {
		_, ok := c.nodes["m3"].View().Key("a")
		return ok, ""
	})
	for _, id := range []node.ID{"m1", "m2", "m3"} {
		c.stop(id)
	}
	dir := filepath.Join(c.dirs, "m3")
	v, err := Recover(dir, recovery("m3"), discard)
	require.NoError(t, err)
	if v.Generation() != 1 || len(v.Members()) != 1 {
		t.Errorf("generation %d, members %+v", v.Generation(), v.Members())
	}
	m3 := c.start("m3")
	c.eventually("m3 leads alone", func() (bool, string) {
		s := m3.Status()
		return m3.Serving() && len(s.Voters) == 1, ""
	})
	if _, ok := m3.View().Key("a"); !ok {
		t.Error("the key is lost")
	}
	c.must(m3, state.KeySet{ID: "b", State: state.KeyAccepted, Pub: "P"})
	c.start("m4")
	c.must(m3, add("m4"))
	c.eventually("m4 votes and knows all", func() (bool, string) {
		s := c.nodes["m4"].Status()
		_, ok := c.nodes["m4"].View().Key("b")
		return ok && len(s.Voters) == 2 && c.nodes["m4"].View().Generation() == 1, ""
	})
	// Again, over the snapshot of the first time.
	c.stop("m3")
	c.stop("m4")
	if v, err := Recover(dir, recovery("m3"), discard); err != nil || v.Generation() != 2 {
		t.Fatalf("generation %d, %v", v.Generation(), err)
	}
	m3 = c.start("m3")
	c.eventually("m3 leads alone again", func() (bool, string) { return m3.Serving(), "" })
	c.must(m3, state.KeySet{ID: "c", State: state.KeyAccepted, Pub: "P"})
}

func TestRecoverWithoutALog(t *testing.T) {
	if _, err := Recover(t.TempDir(), recovery("m1"), discard); err == nil {
		t.Error("something was recovered out of nothing")
	}
}

// A snapshot becomes a cluster of one on an empty machine.
func TestRestore(t *testing.T) {
	c := form(t, 1, nil)
	c.must(c.nodes["m1"], state.KeySet{ID: "a", State: state.KeyAccepted, Pub: "P"})
	var b bytes.Buffer
	require.NoError(t, c.nodes["m1"].View().WriteSnapshot(&b))
	s, err := state.ReadSnapshot(&b)
	require.NoError(t, err)
	dir := filepath.Join(c.dirs, "m9")
	require.NoError(t, Restore(dir, s, recovery("m9"), discard))
	again, err := state.ReadSnapshot(strings.NewReader(snapshotText(t, c.nodes["m1"].View())))
	require.NoError(t, err)
	check.ErrorIs(t, Restore(dir, again, recovery("m9"), discard), ErrBootstrapped, "over a log that is there")
	m9 := c.start("m9")
	c.eventually("m9 leads alone", func() (bool, string) { return m9.Serving(), "" })
	if k, ok := m9.View().Key("a"); !ok || k.State != state.KeyAccepted || m9.View().Generation() != 1 {
		t.Errorf("key %+v, generation %d", k, m9.View().Generation())
	}
	c.must(m9, state.KeySet{ID: "b", State: state.KeyAccepted, Pub: "P"})
	c.stop("m9")
	m9 = c.start("m9")
	c.eventually("m9 after a restart", func() (bool, string) {
		_, ok := m9.View().Key("b")
		return ok && m9.Serving(), ""
	})
}

func snapshotText(t *testing.T, v state.View) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, v.WriteSnapshot(&b))
	return b.String()
}

// A damaged log is found when it is opened, whatever is wrong with it, and nobody votes with it.
func TestDamagedLog(t *testing.T) {
	c := form(t, 1, nil)
	for i := range 40 {
		c.must(c.nodes["m1"], state.KeySet{ID: strings.Repeat("k", i+1), State: state.KeyAccepted,
			Pub: strings.Repeat("P", 4000)})
	}
	c.stop("m1")
	path := filepath.Join(c.dirs, "m1", logFile)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	garbage := func(from, to int) []byte {
		b := bytes.Clone(whole)
		for i := from; i < to; i++ {
			b[i] = 0xa5
		}
		return b
	}
	for name, content := range map[string][]byte{
		"half": whole[:len(whole)/2], "one page": whole[:4096],
		"empty pages":        append(bytes.Clone(whole[:8192]), make([]byte, len(whole)-8192)...),
		"garbage at the end": garbage(len(whole)/2, len(whole)), "garbage all over": garbage(0, len(whole)),
		"garbage behind the head": garbage(8192, len(whole)),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, content, 0o600))
			cfg := Config{ID: "m1", Dir: filepath.Join(c.dirs, "m1"), Port: fabricPort{c.f, "m1"}, Timing: fastTiming(),
				Forward: c.f.forward("m1"), Stats: c.f.stats("m1")}
			n, err := New(cfg)
			require.NoError(t, err)
			check.ErrorIs(t, n.Open(t.Context()), ErrDamaged, "opened with")
			check.NoError(t, n.Close())
		})
	}
}
