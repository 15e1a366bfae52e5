//go:build integration

package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
)

// verify finds no difference in a cluster at rest, finds what somebody changed behind our back, and nothing when that
// is over.
func testVerify(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	first, last := c.Nodes[0], c.Nodes[len(c.Nodes)-1]
	same := func(n *lab.Node) {
		t.Helper()
		labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, "no difference seen by "+n.Name, func(ctx context.Context) error {
			v, code, err := verify(ctx, n)
			if err == nil && code != 0 {
				err = fmt.Errorf("exit code %d: %+v", code, v.Sections)
			}
			return err
		}))
	}
	for _, n := range c.Nodes {
		same(n)
	}
	v, _, err := verify(ctx, first)
	labtest.Must(t, err)
	for _, s := range v.Sections {
		if slices.Contains([]string{"keys", "grains", "pillar"}, s.Name) && s.Items < len(c.Minions) {
			t.Errorf("%s: %d items", s.Name, s.Items)
		}
	}
	id := c.Minions[1].ID
	file := mineFile(last, id)
	raw, err := os.ReadFile(file)
	labtest.Must(t, err)
	labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, "the difference", func(ctx context.Context) error {
		// Unless the scan has just found it, and made it the mine of all nodes.
		if err := os.WriteFile(file, fmt.Appendf(nil, "\x81\xa1f\xa1%d", time.Now().Unix()%10), 0o600); err != nil {
			return err
		}
		v, code, err := verify(ctx, first)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(v.Sections, func(s adminapi.VerifiedSection) bool { return s.Name == "mine" })
		if d := v.Sections[i].Differences; code != 10 || len(d) != 1 || d[0].Item != id ||
			d[0].Nodes[last.Name] == d[0].Nodes[first.Name] {
			return fmt.Errorf("exit code %d: %+v", code, v.Sections[i])
		}
		return nil
	}))
	labtest.Must(t, os.WriteFile(file, raw, 0o600))
	same(last)
	testVerifyRootLeftAlone(t, c, last)
	same(last)
}

// A master whose pillar_roots are not there, as when they are not mounted, has other answers than the rest: verify and
// roots diff say so.
func testVerifyRootLeftAlone(t *testing.T, c *lab.Cluster, n *lab.Node) {
	ctx, first := t.Context(), c.Nodes[0]
	dir := filepath.Join(filepath.Dir(n.Master.FileRoot()), "pillar")
	labtest.Must(t, os.Rename(dir, dir+".away"))
	v, code, err := verify(ctx, first)
	labtest.Must(t, err)
	i := slices.IndexFunc(v.Sections, func(s adminapi.VerifiedSection) bool { return s.Name == "roots" })
	d := v.Sections[i].Differences
	if code != 10 || len(d) != 1 || !strings.HasSuffix(d[0].Nodes[n.Name], "without pillar:base:0") ||
		strings.Contains(d[0].Nodes[first.Name], "without") {
		t.Errorf("a missing directory: exit code %d: %+v", code, v.Sections[i])
	}
	var diff adminapi.RootsDiff
	labtest.Must(t, first.Daemon.CtlJSON(ctx, &diff, "roots", "diff", first.Name, n.Name))
	if len(diff.LeftOut) != 1 || !strings.Contains(diff.LeftOut[0], n.Name+" leaves pillar:base:0 alone") {
		t.Errorf("roots diff: %+v", diff)
	}
	labtest.Must(t, os.Rename(dir+".away", dir))
}

// verify finds a return that is not what the others have, and nothing before and after that, though one master has
// removed jobs that the others keep.
func testVerifyJobs(t *testing.T, c *lab.Cluster) {
	ctx, damaged := t.Context(), c.Nodes[1]
	same := func() {
		t.Helper()
		labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, "no difference", func(ctx context.Context) error {
			v, code, err := verify(ctx, c.Nodes[0])
			if err == nil && code != 0 {
				err = fmt.Errorf("exit code %d: %+v", code, v.Sections)
			}
			return err
		}))
	}
	same()
	const rest = 40 * time.Second // what changed a moment ago is not compared
	var file string
	labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, "a job at rest", func(context.Context) error {
		all, err := filepath.Glob(filepath.Join(damaged.Master.CacheDir(), "jobs", "*", "*", c.IDs()[0], "return.p"))
		for _, path := range all {
			if info, err := os.Stat(filepath.Dir(filepath.Dir(path))); err == nil && time.Since(info.ModTime()) > rest {
				file = path
				return nil
			}
		}
		return errors.Join(err, errors.New("none"))
	}))
	raw, err := os.ReadFile(file)
	labtest.Must(t, err)
	jid, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(file)), "jid"))
	labtest.Must(t, err)
	// in place: no time of a directory changes
	labtest.Must(t, os.WriteFile(file, append(bytes.Clone(raw[:len(raw)-1]), raw[len(raw)-1]^1), 0o644))
	v, code, err := verify(ctx, c.Nodes[0])
	labtest.Must(t, err)
	i := slices.IndexFunc(v.Sections, func(s adminapi.VerifiedSection) bool { return s.Name == "jobs" })
	d := v.Sections[i].Differences
	if code != 10 || len(d) != 1 || d[0].Item != string(jid) || d[0].Nodes[damaged.Name] == d[0].Nodes[c.Nodes[0].Name] {
		t.Errorf("exit code %d: %+v", code, v.Sections[i])
	}
	labtest.Must(t, os.WriteFile(file, raw, 0o644))
	same()
}

func verify(ctx context.Context, n *lab.Node) (v adminapi.Verification, code int, err error) {
	res, err := n.Daemon.Ctl(ctx, "verify", "--out", "json")
	if err == nil {
		err = json.Unmarshal([]byte(res.Stdout), &v)
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, res.Output())
	}
	return v, res.Code, err
}
