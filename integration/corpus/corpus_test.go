package corpus

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltwire"
)

// What is recorded are loads of the minion, without anything that is secret, and covers what is answered in a master's
// place.
func TestRecorded(t *testing.T) {
	for _, version := range lab.Versions {
		c, err := Load(version)
		require.NoError(t, err)
		commands := map[string]int{}
		for i, r := range c.Requests {
			p, err := saltwire.PeekLoad(r.Load)
			if err != nil || p.Cmd != r.Cmd || p.ID != c.ID {
				t.Errorf("%s, %d: %+v, %v", version, i, p, err)
			}
			commands[r.Cmd]++
		}
		t.Logf("%s: %d requests: %v", version, len(c.Requests), commands)
		for _, cmd := range []string{
			"_return", "_minion_event", "_mine", "_mine_get", "_mine_delete", "_mine_flush", "_pillar", "_serve_file",
			"_file_hash",
			"_file_find", "_file_list", "_dir_list", "_symlink_list", "_file_envs", "_file_list_emptydirs", "_file_recv",
			"_master_opts",
			"minion_pub", "pub_ret",
		} {
			if commands[cmd] == 0 {
				t.Errorf("%s: no %s", version, cmd)
			}
		}
		if entry, err := os.Stat("testdata/" + version + ".json.gz"); err != nil || entry.Size() > 1<<20 {
			t.Errorf("%s: %v, %v", version, entry, err)
		}
	}
}

func sample(t *testing.T) []byte {
	t.Helper()
	load, err := saltwire.AppendAny(nil, map[string]any{
		"cmd": "_mine", "id": "m", "nonce": "n", "tok": []byte("t"), "ts": 1, "data": map[string]any{"f": 1}, "more": true,
	}, saltwire.Wire)
	require.NoError(t, err)
	return load
}

// A mutant is msgpack that says who sends it, the same for the same seed.
func TestMutant(t *testing.T) {
	load := sample(t)
	different, kinds := map[string]bool{}, map[string]int{}
	for seed := range uint64(500) {
		m, how := Mutant(load, rand.New(rand.NewPCG(seed, 0)), "mark")
		kinds[how.Kind]++
		if rest, err := msgp.Skip(m); err != nil || len(rest) > 0 {
			t.Fatalf("%x: %v", m, err)
		}
		if p, err := saltwire.PeekLoad(m); err != nil || p.Cmd != "_mine" || p.ID != "m" {
			t.Fatalf("%q: %+v, %v", m, p, err)
		}
		if again, _ := Mutant(load, rand.New(rand.NewPCG(seed, 0)), "mark"); string(m) != string(again) {
			t.Fatalf("seed %d makes two", seed)
		}
		different[string(m)] = true
	}
	if len(different) < 40 || different[string(load)] {
		t.Errorf("%d different ones, the original among them: %v", len(different), different[string(load)])
	}
	for _, kind := range Kinds {
		if kinds[kind] == 0 {
			t.Errorf("none with a field %s: %v", kind, kinds)
		}
	}
}

// What a mutant does can be told from what others do.
func TestMark(t *testing.T) {
	load, err := saltwire.AppendAny(nil, map[string]any{
		"cmd": "_minion_event", "id": "m", "tag": "a",
		"events": []any{map[string]any{"tag": "b", "data": nil}, map[string]any{"tag": "c"}},
	}, saltwire.Wire)
	require.NoError(t, err)
	for seed := range uint64(100) {
		out, m := Mutant(load, rand.New(rand.NewPCG(seed, 0)), "mark")
		want := map[string]int{"tag": 2, "events": 1}[m.Field]
		if want == 0 || m.Kind == OtherName || m.Kind == Within && strings.Count(string(out), "/mark") > want {
			want = 3 // or fewer
		}
		if got := strings.Count(string(out), "/mark"); m.Mark != "mark" || got > want || got == 0 {
			t.Errorf("%v: %q", m, out)
		}
	}
}

func TestFresh(t *testing.T) {
	load, err := Fresh(sample(t), map[string]any{"nonce": "new", "ts": 5, "absent": 1})
	require.NoError(t, err)
	v, _, err := msgp.ReadIntfBytes(load)
	m, _ := v.(map[string]any)
	if err != nil || len(m) != 7 || m["nonce"] != "new" || m["more"] != true || m["absent"] != nil {
		t.Errorf("%v, %v", v, err)
	}
}
