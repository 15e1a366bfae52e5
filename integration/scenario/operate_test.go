//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
)

// What the guides tell an operator to do by hand, where it takes longer than a scenario of every day may.
func TestOperate(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("takes minutes; run: make test-operate")
	}
	l := labtest.New(t, lab.Options{})
	spec := lab.DefaultCluster()
	spec.Minions, spec.MasterSettings, spec.Seams = lab.Versions, clusterMasters, lab.SeamClock
	spec.DaemonSettings = metricsForAll
	c, err := l.NewCluster(t.Context(), spec)
	labtest.Must(t, err)
	for _, n := range c.Nodes {
		labtest.Must(t, n.Master.GiveSeams(lab.SeamClock))
	}
	labtest.Must(t, c.Up(t.Context()))
	for _, s := range []struct {
		name string
		test func(*testing.T, *lab.Cluster)
	}{
		{"a configuration is compared", testConfigDiff},
		{"a clock is wrong", testSkew},
		{"serials of a wrong clock", testSerials},
		{"a key store, the master restarted first", testStoreOrder},
		{"a returner that hangs", testReturnerHangs},
		{"remove --force", testRemoveForce},
	} {
		if !t.Run(s.name, func(t *testing.T) { s.test(t, c) }) {
			t.Log(l.Tails(40))
			t.FailNow()
		}
	}
}

// The master is restarted before its store is made: status asks for a second restart. Then the store is moved away, and
// comes back.
func testStoreOrder(t *testing.T, c *lab.Cluster) {
	ctx, n := t.Context(), c.Nodes[2]
	path := filepath.Join(n.Master.ConfigDir, "master.d/saltclusterd.conf")
	files, err := os.ReadFile(path)
	labtest.Must(t, err)
	labtest.Must(t, n.Master.Stop(ctx))
	labtest.Must(t, n.Daemon.Pause()) // or its store would be there before the master has come up
	store := strings.Replace(string(files), "keys.cache_driver: localfs_key",
		"keys.cache_driver: mmap_key\nmmap_key_size: 5003", 1)
	labtest.Must(t, os.WriteFile(path, []byte(store), 0o644))
	labtest.Must(t, n.Master.Start(ctx))
	labtest.Must(t, n.Master.WaitReady(ctx, 2*time.Minute))
	labtest.Must(t, n.Daemon.Resume())
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "status to ask for a restart", func(ctx context.Context) error {
		res, err := n.Daemon.Ctl(ctx, "status")
		if err == nil && !strings.Contains(res.Stdout, "restart the salt-master") {
			err = errors.New(res.Stdout)
		}
		return err
	}))
	labtest.Must(t, n.Master.Stop(ctx))
	labtest.Must(t, n.Master.Start(ctx))
	well := func() {
		t.Helper()
		storeStatus(t, n, func(k *adminapi.KeyStore) bool { return k != nil && !k.Busy && k.Error == "" })
		labtest.Must(t, c.Whole(ctx, 2*time.Minute))
		for _, o := range c.Nodes {
			labtest.Must(t, c.Answering(ctx, o))
		}
		for _, id := range c.IDs() {
			storedIs(t, n, id, "minions")
		}
	}
	well()

	labtest.Must(t, n.Master.Stop(ctx))
	away, err := filepath.Glob(filepath.Join(n.Master.PKIDir(), ".mmap_keys.idx*"))
	labtest.Must(t, err)
	if len(away) == 0 {
		t.Fatal("there is no store")
	}
	for _, name := range away {
		labtest.Must(t, os.Rename(name, filepath.Join(t.TempDir(), filepath.Base(name))))
	}
	labtest.Must(t, n.Master.Start(ctx))
	well()

	labtest.Must(t, os.WriteFile(path, files, 0o644))
	labtest.Must(t, n.Master.Stop(ctx))
	labtest.Must(t, n.Master.Start(ctx))
	storeStatus(t, n, func(k *adminapi.KeyStore) bool { return k == nil })
	labtest.Must(t, c.Answering(ctx, n))
}

// What costs the majority is refused with a name, and done when it is forced; the way out is the one that status tells.
func testRemoveForce(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	m1, m2, m3 := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	must(t, m1.Daemon, "transfer", m1.Name)
	labtest.Must(t, m3.Daemon.Kill())
	standing(t, m1.Daemon, "m1 voter alive", "m2 voter alive", "m3 voter failed")
	res := ctl(t, m1.Daemon, "remove", "--yes", m2.Name)
	if res.Code != 6 || !strings.Contains(res.Stderr, m3.Name) {
		t.Errorf("remove: %d, %s", res.Code, res.Stderr)
	}
	labtest.Must(t, c.Answering(ctx, m2))
	res = ctl(t, m1.Daemon, "remove", "--yes", "--force", m2.Name)
	t.Logf("remove --force: %d, %s%s", res.Code, res.Stdout, res.Stderr)
	removed(t, m2.Daemon, "was removed from the cluster")
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "m1 to say that the quorum is lost", func(ctx context.Context) error {
		res, err := m1.Daemon.Ctl(ctx, "status")
		if err == nil && !strings.Contains(res.Stdout, "recover --force-new-cluster") {
			err = fmt.Errorf("status:\n%s", res.Stdout)
		}
		return err
	}))
	labtest.Must(t, c.Answering(ctx, m1)) // minions are served all the while
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the recovery", func(ctx context.Context) error {
		res, err := m1.Daemon.Ctl(ctx, "recover", "--force-new-cluster", "--yes")
		if err == nil {
			err = res.Err()
		}
		return err
	}))
	labtest.Must(t, m3.Daemon.Start(ctx))
	removed(t, m3.Daemon, "recovered without this node")
	must(t, m2.Daemon, "join", m1.Addr)
	must(t, m3.Daemon, "join", m1.Addr)
	labtest.Must(t, c.Whole(ctx, 3*time.Minute))
	for _, n := range c.Nodes {
		labtest.Must(t, c.Answering(ctx, n))
	}
	must(t, m1.Daemon, "verify")
}
