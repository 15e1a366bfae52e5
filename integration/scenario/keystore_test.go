//go:build integration

package scenario

import (
	"context"
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

// A 3008 master is given a key store of its own (mmap_key) while the cluster works, is used with it, and goes back to
// files.
func testKeyStore(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	m1, m2, m3 := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	back := useStore(t, c, m3)
	defer back()

	m, err := c.Minions[0].Host().NewMinion(lab.Versions[0], "stored", c.LB.Host().Addr)
	labtest.Must(t, err)
	labtest.Must(t, m.Start(ctx))
	defer func() { _ = m.Kill() }()
	change := func(n *lab.Node, state string, option ...string) {
		t.Helper()
		res, err := n.Master.Run(ctx, "salt-key", append([]string{"-y"}, option...)...)
		labtest.Must(t, err)
		labtest.Must(t, res.Err())
		keyIs(t, c, "stored", state, 10*time.Second)
		storedIs(t, m3, "stored", state)
	}
	keyIs(t, c, "stored", "minions_pre", time.Minute)
	change(m3, "minions", "-a", "stored")
	for _, n := range c.Nodes {
		labtest.Must(t, lab.Answering(ctx, n.Master, append(c.IDs(), "stored")...))
	}
	labtest.Must(t, m.Stop(ctx)) // it would ask for its key again and again
	res, err := m3.Master.Run(ctx, "salt-run", "pki.migrate_to_mmap")
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	change(m2, "minions_rejected", "-r", "stored", "--include-accepted")
	change(m1, "minions", "-a", "stored", "--include-rejected")
	change(m3, "", "-d", "stored")
}

// useStore configures the node's master for mmap_key and returns what undoes that.
func useStore(t *testing.T, c *lab.Cluster, n *lab.Node) (back func()) {
	t.Helper()
	ctx := t.Context()
	path := filepath.Join(n.Master.ConfigDir, "master.d/saltclusterd.conf")
	files, err := os.ReadFile(path)
	labtest.Must(t, err)
	store := strings.Replace(string(files), "keys.cache_driver: localfs_key",
		"keys.cache_driver: mmap_key\nmmap_key_size: 5003", 1)
	labtest.Must(t, os.WriteFile(path, []byte(store), 0o644))
	storeStatus(t, n, func(k *adminapi.KeyStore) bool { return k != nil && !k.Busy && k.Error == "" })
	restart := func() {
		t.Helper()
		labtest.Must(t, n.Master.Stop(ctx))
		labtest.Must(t, n.Master.Start(ctx))
		labtest.Must(t, c.Whole(ctx, 2*time.Minute))
		labtest.Must(t, c.Answering(ctx, n))
	}
	restart()
	return func() {
		labtest.Must(t, os.WriteFile(path, files, 0o644))
		restart()
		storeStatus(t, n, func(k *adminapi.KeyStore) bool { return k == nil })
		labtest.Must(t, c.Answering(ctx, n))
	}
}

func storeStatus(t *testing.T, n *lab.Node, ok func(*adminapi.KeyStore) bool) {
	t.Helper()
	start := time.Now()
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "the key store of "+n.Name, func(ctx context.Context) error {
		var st adminapi.Status
		if err := n.Daemon.CtlJSON(ctx, &st, "status"); err != nil {
			return err
		}
		if !ok(st.Node.KeyStore) || !st.Node.Ready {
			return fmt.Errorf("%+v, ready: %t", st.Node.KeyStore, st.Node.Ready)
		}
		return nil
	}))
	t.Logf("key store noticed after %s", time.Since(start).Round(100*time.Millisecond))
}

// storedIs waits until the master's own salt-key says so, which shows the store only, and nobody that is not a minion.
func storedIs(t *testing.T, n *lab.Node, id, state string) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), 30*time.Second, "salt-key on "+n.Name, func(ctx context.Context) error {
		keys, err := n.Master.Keys(ctx)
		if err != nil {
			return err
		}
		for name, ids := range keys {
			if slices.ContainsFunc(ids, func(id string) bool { return strings.HasPrefix(id, ".") }) {
				return errors.New("the hidden minion is shown")
			}
			if name != "local" && slices.Contains(ids, id) != (name == state) {
				return fmt.Errorf("%s: %v", name, ids)
			}
		}
		return nil
	}))
}
