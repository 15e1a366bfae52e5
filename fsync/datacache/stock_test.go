package datacache

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// stockScript is Salt's own code against a cachedir: it stores as a master that carries out _pillar does, or answers as
// targeting and the cache runner do.
const stockScript = `
import json, sys, os
import salt.config, salt.cache, salt.utils.minions, salt.utils.master
ask = json.loads(sys.stdin.read())
opts = salt.config.master_config(None)
opts.update(cachedir=ask["cachedir"], pki_dir=ask["pki"], sock_dir=ask["pki"], root_dir=ask["pki"])
major = ask["major"]
cache = salt.cache.factory(opts)
for id_, what in ask["store"].items():
    what["grains"]["bytes"] = b"\xff\x00"
    what["grains"]["big"] = 1 << 63
    if major < 3008:
        cache.store("minions/" + id_, "data", what)
    else:
        cache.store("pillar", id_, what["pillar"])
        cache.store("grains", id_, what["grains"])
ck = salt.utils.minions.CkMinions(opts)
def match(expr, kind):
    return sorted(ck.check_minions(expr, kind)["minions"])
out = {
    "G": {e: match(e, "grain") for e in ask["G"]},
    "I": {e: match(e, "pillar") for e in ask["I"]},
    "C": {e: match(e, "compound") for e in ask["C"]},
}
out["cached"] = {}
for id_ in ask["ids"] or []:
    _, grains, pillar = salt.utils.minions.get_minion_data(id_, opts)
    if grains:
        grains = {k: repr(v) for k, v in grains.items()}
    out["cached"][id_] = [grains, pillar]
print(json.dumps(out))
`

type stockAsk struct {
	CacheDir string                    `json:"cachedir"`
	PKI      string                    `json:"pki"`
	Major    int                       `json:"major"`
	Store    map[string]map[string]any `json:"store"`
	G        []string
	I        []string
	C        []string
	IDs      []string `json:"ids"`
}

type stockAnswer struct {
	G, I, C map[string][]string
	Cached  map[string][]map[string]any `json:"cached"`
}

// stockSalts lists the virtual environments below $SALTCLUSTER_VENVS by version.
func stockSalts(t *testing.T) map[string]string {
	t.Helper()
	dir := os.Getenv("SALTCLUSTER_VENVS")
	if dir == "" {
		t.Skip("SALTCLUSTER_VENVS is not set")
	}
	found, err := filepath.Glob(filepath.Join(dir, "3*", "bin", "python"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no Salt in %s: %v", dir, err)
	}
	out := map[string]string{}
	for _, python := range found {
		out[filepath.Base(filepath.Dir(filepath.Dir(python)))] = python
	}
	return out
}

func askStock(t *testing.T, python string, q stockAsk) (a stockAnswer) {
	t.Helper()
	if q.Store == nil {
		q.Store = map[string]map[string]any{}
	}
	in, err := json.Marshal(q)
	require.NoError(t, err)
	cmd := exec.CommandContext(context.Background(), python, "-c", stockScript)
	cmd.Stdin = bytes.NewReader(in)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return a
}

// Each version of Salt stores data of one minion; then each must answer all questions about all of them, from what we
// wrote, with the same.
func TestStockReadsWhatOthersStored(t *testing.T) {
	salts := stockSalts(t)
	w := newWorld(t)
	dir := t.TempDir()
	t.Cleanup(w.close)
	q := stockAsk{
		G: []string{"os:*", "os:Debian", "role:web", "nobody:*"}, I: []string{"secret:*", "deep:er:x"},
		C: []string{"G@os:Debian and I@deep:er:x", "G@role:web or not I@secret:*"},
	}
	asks := map[string]stockAsk{}
	for version := range salts {
		major, err := strconv.Atoi(version[:4])
		require.NoError(t, err)
		n := w.add(node.ID("n"+strings.ReplaceAll(version, ".", "-")), major, filepath.Join(dir, version))
		mine := q
		mine.CacheDir, mine.Major, mine.PKI = n.master.CacheDir, major, filepath.Join(dir, version, "pki")
		asks[version] = mine
		q.IDs = append(q.IDs, "of-"+version)
		w.setKey("of-"+version, "k")
	}
	slices.Sort(q.IDs)
	for version, ask := range asks {
		accepted := filepath.Join(ask.PKI, "minions")
		require.NoError(t, os.MkdirAll(accepted, 0o755))
		for _, id := range q.IDs {
			require.NoError(t, os.WriteFile(filepath.Join(accepted, id), []byte("k"), 0o644))
		}
		first := ask
		first.Store = map[string]map[string]any{"of-" + version: {
			"grains": map[string]any{"os": "Debian", "role": "web", "id": "of-" + version},
			"pillar": map[string]any{"secret": "ü", "deep": map[string]any{"er": []string{"x", version}}},
		}}
		askStock(t, salts[version], first)
	}
	for _, n := range w.nodes {
		w.poll("all data on "+string(n.id), func() bool { return n.store.Status().Minions == len(salts) })
	}
	for version, ask := range asks {
		ask.IDs = q.IDs
		got := askStock(t, salts[version], ask)
		for expr, want := range map[string][]string{"os:*": q.IDs, "os:Debian": q.IDs, "role:web": q.IDs, "nobody:*": {}} {
			check.EqualSlices(t, got.G[expr], want, version, "-G", expr)
		}
		for _, expr := range q.I {
			check.EqualSlices(t, got.I[expr], q.IDs, version, "-I", expr)
		}
		for _, expr := range q.C {
			check.EqualSlices(t, got.C[expr], q.IDs, version, "-C", expr)
		}
		for _, id := range q.IDs {
			data := got.Cached[id]
			if len(data) != 2 || data[0]["bytes"] != `b'\xff\x00'` || data[0]["big"] != "9223372036854775808" ||
				data[1]["secret"] != "ü" {
				t.Errorf("%s: cached of %s: %v", version, id, data)
			}
		}
	}
}
