//go:build integration

package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// askAll prints what Salt's own code says on a master: whom targets mean, what is cached, who is up. The modules are
// loaded once.
const askAll = `
import json, sys
import salt.config, salt.loader, salt.minion, salt.utils.minions
opts = salt.config.master_config(sys.argv[1])
loaded = salt.minion.MasterMinion(opts)
salt.minion.MasterMinion = lambda *args, **kwargs: loaded
run = salt.loader.runner(opts)
means = salt.utils.minions.CkMinions(opts).check_minions
said = {"%s %s" % (how, tgt): sorted(means(tgt, how)["minions"]) for how, tgt in json.loads(sys.argv[2])}
for fun in "cache.grains", "cache.pillar", "cache.mine":
    said[fun] = run[fun](tgt="*")
said["cache.grains by grain"] = sorted(run["cache.grains"](tgt="os:*", tgt_type="grain"))
said["mine.get"] = run["mine.get"]("*", sys.argv[3])
if len(sys.argv) > 4:
    said["manage.status"] = {how: sorted(ids) for how, ids in run["manage.status"]().items()}
print("\n" + json.dumps(said, sort_keys=True, default=str))
`

// askedAll is what the Salt of a node says of targets and caches, in words; with who is up when somebody wants to know
// that.
func askedAll(ctx context.Context, n *lab.Node, targets []target, mine string, status bool) (map[string]string, error) {
	pairs := make([][2]string, 0, len(targets))
	for _, g := range targets {
		pairs = append(pairs, [2]string{g.how, g.tgt})
	}
	args := []string{"-c", askAll, n.Master.ConfigDir + "/master", text(pairs), mine}
	if status {
		args = append(args, "status")
	}
	return answersOf(ctx, n, args...)
}

// answersOf are those that a script of Python prints in its last line as JSON, by question.
func answersOf(ctx context.Context, n *lab.Node, args ...string) (map[string]string, error) {
	res, err := n.Master.Run(ctx, "python", args...)
	if err == nil {
		err = res.Err()
	}
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(res.Stdout), "\n")
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &raw); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, res.Output())
	}
	said := make(map[string]string, len(raw))
	for question, answer := range raw {
		said[question] = string(answer)
	}
	return said, nil
}

// target is whom something is meant for, and who that is.
type target struct {
	how, tgt string
	ids      []string
}

// sameEverywhere waits until all nodes give the same answers, with the targets meaning whom they should, and returns
// them.
func sameEverywhere(t *testing.T, within time.Duration, nodes []*lab.Node, targets []target, mine string,
	status bool) (said map[string]string) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), within, "the same answers on all masters",
		func(ctx context.Context) error {
			all := make([]map[string]string, len(nodes))
			errs := make([]error, len(nodes))
			var wg sync.WaitGroup
			for i, n := range nodes {
				wg.Go(func() { all[i], errs[i] = askedAll(ctx, n, targets, mine, status) })
			}
			wg.Wait()
			for i, n := range nodes {
				if errs[i] != nil {
					return fmt.Errorf("%s: %w", n.Name, errs[i])
				}
				if d := unlike(all[0], all[i]); d != "" {
					return fmt.Errorf("%s and %s: %s", nodes[0].Name, n.Name, d)
				}
			}
			said = all[0]
			for _, g := range targets {
				want := text(slices.Sorted(slices.Values(g.ids)))
				if len(g.ids) == 0 {
					want = "[]"
				}
				if got := strings.ReplaceAll(said[g.how+" "+g.tgt], " ", ""); got != want {
					return fmt.Errorf("%s %s is %s, not %s", g.how, g.tgt, got, want)
				}
			}
			return nil
		}))
	return said
}

// unlike says where answers differ.
func unlike(a, b map[string]string) string {
	for question := range maps.Keys(a) {
		if x, y := a[question], b[question]; x != y {
			at := 0
			for at < min(len(x), len(y)) && x[at] == y[at] {
				at++
			}
			from := max(0, at-80)
			return fmt.Sprintf("%s: …%.160s… and …%.160s…", question, x[from:], y[min(from, len(y)):])
		}
	}
	return ""
}

// targetsOf are ways to mean the minions of a cluster, by what masters have cached of them.
func targetsOf(c *lab.Cluster) []target {
	ids := c.IDs()
	first, last := ids[0], ids[len(ids)-1]
	rest := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == first })
	return []target{
		{"glob", "*", ids},
		{"grain", "os:*", ids},
		{"grain", "id:" + last, []string{last}},
		{"grain", "no:such", []string{}},
		{"grain_pcre", "id:^" + first + "$", []string{first}},
		{"pillar", "demo:for:*", ids},
		{"pillar", "demo:for:" + first, []string{first}},
		{"pillar_exact", "demo:for:" + last, []string{last}},
		{"pillar_pcre", "demo:for:^" + last, []string{last}},
		{"ipcidr", "0.0.0.0/0", ids},
		{"compound", "G@os:* and not G@id:" + first, rest},
		{"compound", "G@id:" + first + " and I@demo:for:*", []string{first}},
		{"compound", "P@id:^" + first + " or J@demo:for:^" + last, slices.Compact([]string{first, last})},
		{"compound", "* and not L@" + first, rest},
	}
}
