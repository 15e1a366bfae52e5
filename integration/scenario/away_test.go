//go:build integration

package scenario

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// week is how long the node of testAway is made to seem to have been away, as far as files tell.
const week = 8 * 24 * time.Hour

// awayKeys are minion keys that are decided about on both sides: the state before, what the others and what the away do
// with it meanwhile ("" deletes, "=" leaves it), and what must come of it.
var awayKeys = map[string]struct{ before, others, away, want string }{
	"away-kept":          {"minions", "=", "=", "minions"},
	"away-rejected":      {"minions", "minions_rejected", "=", "minions_rejected"},
	"away-deleted":       {"minions", "", "=", ""},
	"away-deleted-twice": {"minions", "", "", ""},
	"away-accepted":      {"minions_pre", "minions", "=", "minions"},
	"away-here-rejected": {"minions", "=", "minions_rejected", "minions_rejected"},
	"away-here-deleted":  {"minions", "=", "", ""},
	"away-here-accepted": {"minions_pre", "=", "minions", "minions"},
	"away-both":          {"minions", "minions_rejected", "", "minions_rejected"}, // the cluster's decision wins
	"away-not-revived":   {"minions_pre", "", "minions", ""},
	"away-new-there":     {"", "minions_pre", "=", "minions_pre"},
	"away-new-here":      {"", "=", "minions_pre", "minions_pre"},
}

// A node was down for a week, its salt-master with it; both sides went on with keys, tokens, roots and jobs. It comes
// back and nothing is lost, and nothing resurrected.
func testAway(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	here, other, away := c.Nodes[0], c.Nodes[2], c.Nodes[1]
	rootsSettled(t, c)
	pub := publicKey(t)
	for id, k := range awayKeys {
		moveKey(t, here, id, pub, "=", k.before)
	}
	for id, k := range awayKeys {
		keyIs(t, c, id, k.before, time.Minute)
	}
	for _, f := range []string{"same", "theirs", "mine", "both", "gone", "gone-there-edited-here",
		"gone-here-edited-there"} {
		writeRoot(t, here, "away/"+f, "before", 0o644)
	}
	onNodes(t, c.Nodes, "the last file", holds("away/gone-here-edited-there", "before"))
	rootsSettled(t, c)
	revoked, revokedHere, kept := makeToken(t, here, c.Minions[0].ID), makeToken(t, here, c.Minions[0].ID), makeToken(t,
		here, c.Minions[0].ID)
	onNodes(t, c.Nodes, "tokens", func(n *lab.Node) error {
		return tokenFiles(n, []string{revoked, revokedHere, kept}, 3)
	})
	old := async(t, here, "test.arg", "a", "week", "ago")
	for _, n := range c.Nodes {
		inCache(t, c, n, old, time.Minute)
	}

	labtest.Must(t, away.Daemon.Stop(ctx))
	labtest.Must(t, away.Master.Stop(ctx))
	young := ranMeanwhile(t, c, here)

	for id, k := range awayKeys { // what happens there
		if k.others != "=" {
			decideKey(t, other, id, pub, k.before, k.others)
		}
	}
	writeRoot(t, here, "away/theirs", "others", 0o644)
	writeRoot(t, other, "away/both", "others", 0o644)
	writeRoot(t, here, "away/gone-here-edited-there", "others", 0o644)
	writeRoot(t, other, "away/new-there", "others", 0o644)
	labtest.Must(t, errors.Join(os.Remove(inRoots(here, "away/gone")),
		os.Remove(inRoots(here, "away/gone-there-edited-here"))))
	deleteToken(t, other, revoked)
	made := makeToken(t, other, c.Minions[0].ID)
	inCache(t, c, other, young, time.Minute)
	for _, n := range c.Nodes { // the retention of the others has removed what is old
		makeOld(t, n, old, week)
	}
	for _, n := range []*lab.Node{here, other} {
		if dir := findJobDir(t, n, old); dir != "" { // else its master has just cleaned up itself
			labtest.Must(t, os.RemoveAll(dir))
		}
	}

	for id, k := range awayKeys { // what happens here
		if k.away != "=" {
			moveKey(t, away, id, pub, k.before, k.away)
		}
	}
	for path, text := range map[string]string{"mine": "its own", "both": "its own", "gone-there-edited-here": "its own",
		"new-here": "its own"} {
		writeRoot(t, away, "away/"+path, text, 0o644)
	}
	labtest.Must(t, os.Remove(inRoots(away, "away/gone-here-edited-there")))
	labtest.Must(t, os.Remove(tokenFile(t, away, revokedHere)))

	began := time.Now()
	labtest.Must(t, away.Daemon.Start(ctx))
	labtest.Must(t, away.Daemon.Serving(ctx, 2*time.Minute))
	t.Logf("serving after %s", time.Since(began).Round(time.Millisecond))
	// What was decided elsewhere is here with the first answer to a minion; what was done here, moments later everywhere.
	for id, k := range awayKeys {
		if got := away.Master.KeyState(id); k.away == "=" && got != k.want {
			t.Errorf("it serves, and the key %s is %q", id, got)
		}
	}
	for path, want := range map[string]string{"theirs": "others", "gone-here-edited-there": "others",
		"new-there": "others"} {
		check.NoError(t, holds("away/"+path, want)(away), "it serves with old roots")
	}
	if err := errors.Join(tokenFiles(away, []string{made, kept}, 2), tokenFiles(away, []string{revoked}, 0)); err != nil {
		t.Errorf("it serves with old tokens: %v", err)
	}
	if found, err := cached(ctx, away, young); err != nil || len(found) < len(c.IDs()) {
		t.Errorf("it serves without the newest job: %d returns, %v", len(found), err)
	}
	labtest.Must(t, away.Master.Start(ctx))
	labtest.Must(t, away.Master.WaitReady(ctx, 3*time.Minute))

	labtest.Must(t, c.Whole(ctx, 2*time.Minute))
	for id, k := range awayKeys {
		keyIs(t, c, id, k.want, time.Minute)
	}
	sameKeys(t, c)
	for path, want := range map[string]string{
		"same": "before", "theirs": "others", "mine": "its own", "both": "others", "new-there": "others",
		"new-here":               "its own",
		"gone-there-edited-here": "its own", "gone-here-edited-there": "others",
	} {
		onNodes(t, c.Nodes, path, holds("away/"+path, want))
	}
	onNodes(t, c.Nodes, "a deletion", gone("away/gone"))
	rootsSettled(t, c)
	onNodes(t, c.Nodes, "tokens", func(n *lab.Node) error {
		return errors.Join(tokenFiles(n, []string{made, kept}, 2), tokenFiles(n, []string{revoked, revokedHere}, 0))
	})
	sameJobs(t, time.Minute, c.Nodes, young)
	labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, "no difference", func(ctx context.Context) error {
		v, code, err := verify(ctx, away)
		if err == nil && code != 0 {
			err = fmt.Errorf("exit code %d: %+v", code, v.Sections)
		}
		return err
	}))
	for _, n := range []*lab.Node{here, other} {
		if found, err := cached(ctx, n, old); err != nil || len(found) > 0 {
			t.Errorf("the old job is back on %s: %v, %v", n.Name, found, err)
		}
	}
	forgetAway(t, c, here)
}

// ranMeanwhile has all minions run a job, those too whose node has just gone, and returns its id.
func ranMeanwhile(t *testing.T, c *lab.Cluster, n *lab.Node) (jid string) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), 2*time.Minute, "a job of all minions", func(ctx context.Context) error {
		jid = async(t, n, "test.arg", "while", "it", "was", "away")
		return lab.Eventually(ctx, 30*time.Second, "all returns", func(ctx context.Context) error {
			found, err := cached(ctx, n, jid)
			if err != nil {
				return err
			}
			return lab.AnsweredBy(found, c.IDs()...)
		})
	}))
	return jid
}

// forgetAway leaves the cluster as it was.
func forgetAway(t *testing.T, c *lab.Cluster, n *lab.Node) {
	t.Helper()
	for id, k := range awayKeys {
		if k.want != "" {
			decideKey(t, n, id, "", k.want, "")
		}
	}
	for id := range awayKeys {
		keyIs(t, c, id, "", time.Minute)
	}
	labtest.Must(t, os.RemoveAll(inRoots(n, "away")))
	res, err := n.Daemon.Ctl(t.Context(), "sync_roots", "--force", "--yes", "--timeout", "1m")
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
}

// decideKey does as an operator who decides about very many keys at once: what takes accepted keys away is said to the
// cluster, for of files that go it may be held (testHeldKeys).
func decideKey(t *testing.T, n *lab.Node, id, pub, from, to string) {
	t.Helper()
	verbs := map[string]string{"": "delete", "minions_rejected": "reject"}
	if verb, takes := verbs[to]; takes && from == "minions" {
		must(t, n.Daemon, "keys", verb, "--yes", id)
		return
	}
	moveKey(t, n, id, pub, from, to)
}

// moveKey does with a key file what an operator does by hand: from one state to another; "" is nowhere.
func moveKey(t *testing.T, n *lab.Node, id, pub, from, to string) {
	t.Helper()
	path := func(state string) string { return filepath.Join(n.Master.PKIDir(), state, id) }
	switch {
	case to == "" && (from == "" || from == "="):
	case to == "":
		labtest.Must(t, os.Remove(path(from)))
	case from == "" || from == "=":
		labtest.Must(t, os.MkdirAll(filepath.Dir(path(to)), 0o755))
		labtest.Must(t, os.WriteFile(path(to), []byte(pub), 0o644))
	default:
		labtest.Must(t, os.Rename(path(from), path(to)))
	}
}

// publicKey is one of no minion; so many ids may share it, for nobody signs in with it.
func publicKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	labtest.Must(t, err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	labtest.Must(t, err)
	return strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
}

// sameKeys compares what salt-key lists on all nodes.
func sameKeys(t *testing.T, c *lab.Cluster) {
	t.Helper()
	var first map[string][]string
	for _, n := range c.Nodes {
		keys, err := n.Master.Keys(t.Context())
		labtest.Must(t, err)
		for _, ids := range keys {
			slices.Sort(ids)
		}
		if first == nil {
			first = keys
		}
		for state := range maps.Keys(first) {
			if state != "local" && !slices.Equal(first[state], keys[state]) {
				t.Errorf("salt-key lists as %s %v on %s, %v on %s", state, first[state], c.Nodes[0].Name, keys[state], n.Name)
			}
		}
	}
}

func deleteToken(t *testing.T, n *lab.Node, token string) {
	t.Helper()
	labtest.Must(t, os.Remove(tokenFile(t, n, token)))
}

func tokenFile(t *testing.T, n *lab.Node, token string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(n.Master.CacheDir(), "tokens", token+"*"))
	labtest.Must(t, err)
	if len(names) != 1 {
		t.Fatalf("%d files of a token on %s", len(names), n.Name)
	}
	return names[0]
}

// jobDir is the directory of a job in a master's job cache.
func jobDir(t *testing.T, n *lab.Node, jid string) string {
	t.Helper()
	dir := findJobDir(t, n, jid)
	if dir == "" {
		t.Fatalf("no job %s on %s", jid, n.Name)
	}
	return dir
}

// findJobDir returns nothing where the job is not there.
func findJobDir(t *testing.T, n *lab.Node, jid string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(n.Master.CacheDir(), "jobs", "*", "*", "jid"))
	labtest.Must(t, err)
	for _, name := range names {
		if raw, err := os.ReadFile(name); err == nil && string(raw) == jid {
			return filepath.Dir(name)
		}
	}
	return ""
}

// makeOld makes a job older, as its master's cleaning sees it.
func makeOld(t *testing.T, n *lab.Node, jid string, by time.Duration) {
	t.Helper()
	at := time.Now().Add(-by)
	labtest.Must(t, os.Chtimes(filepath.Join(jobDir(t, n, jid), "jid"), at, at))
}
