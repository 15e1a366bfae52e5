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

	"golang.org/x/sync/errgroup"

	"saltclusterd/integration/check"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/saltcrypt"
)

// wireMasters is what masters are told that want everything signed. signing_algorithm is no option of a stock master,
// which nevertheless fails without it when minions sign what they return.
var wireMasters = lab.Settings{
	"timeout": 20, "gather_job_timeout": 20, // a slow machine must not look like a lost job: what is lost fails the test
	"loop_interval":      2, // seconds until a master that is asked for another AES key makes one
	"master_sign_pubkey": true, "publish_signing_algorithm": saltcrypt.PKCS1v15SHA224,
	"signing_algorithm": saltcrypt.PKCS1v15SHA224, "require_minion_sign_messages": true,
	"drop_messages_signature_fail": true,
}

// metricsForAll lets the test read what the daemons count.
var metricsForAll = lab.Settings{"health_trusted": []string{"0.0.0.0/0"}}

// wireCluster starts a cluster and two minions of each version with the options that change what is on the wire.
func wireCluster(t *testing.T) *lab.Cluster {
	ctx := t.Context()
	l := labtest.New(t, lab.Options{})
	c, err := l.NewCluster(ctx, lab.ClusterSpec{Masters: lab.Versions, MasterSettings: wireMasters,
		DaemonSettings: metricsForAll})
	labtest.Must(t, err)
	sign, err := saltcrypt.GenerateMasterKey(2048)
	labtest.Must(t, err)
	putKey(t, c.Nodes[0].Master.PKIDir(), "master_sign.pem", string(sign.PEM()))
	putKey(t, c.Nodes[0].Master.PKIDir(), "master_sign.pub", sign.PublicText())
	labtest.Must(t, c.Form(ctx))
	for _, n := range c.Nodes[1:] { // which have joined before they had one
		signsWith(t, n.Master, sign)
	}
	h, err := l.Host(ctx, "min")
	labtest.Must(t, err)
	for _, v := range lab.Versions {
		for name, options := range map[string]lab.Settings{
			"strict": {
				"always_verify_signature": true,
				"master_finger":           saltcrypt.Fingerprint(masterPub(t, c.Nodes[0].Master)),
			},
			"sha224": {"zmq_filtering": true, "encryption_algorithm": saltcrypt.OAEPSHA224},
		} {
			m, err := h.NewMinion(v, "min"+v[2:4]+"-"+name, c.LB.Host().Addr, options, lab.Settings{
				// Minions that do not verify refuse masters that sign their key.
				"verify_master_pubkey_sign": true, "sign_pub_messages": true, "minion_sign_messages": true,
				"signing_algorithm": saltcrypt.PKCS1v15SHA224,
			})
			labtest.Must(t, err)
			putKey(t, m.PKIDir(), "master_sign.pub", sign.PublicText())
			c.Minions = append(c.Minions, m)
		}
	}
	labtest.Must(t, c.StartEdge(ctx))
	labtest.Must(t, c.AcceptKeys(ctx))
	labtest.Must(t, c.Answering(ctx, c.Nodes[0]))
	return c
}

// signsWith says what a master signs its public key with, and that only it may read that.
func signsWith(t *testing.T, m *lab.Master, sign *saltcrypt.MasterKey) {
	t.Helper()
	path := filepath.Join(m.PKIDir(), "master_sign.pem")
	raw, err := os.ReadFile(path)
	labtest.Must(t, err)
	if key, err := saltcrypt.ParseMasterKey(raw); err != nil || !key.Public().Equal(sign.Public()) {
		t.Errorf("%s is another key than the cluster's (%v)", path, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o400 {
		t.Errorf("%s: %v, %v", path, info.Mode(), err)
	}
}

func putKey(t *testing.T, dir, name, text string) {
	t.Helper()
	labtest.Must(t, os.MkdirAll(dir, 0o700))
	labtest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o400))
}

func masterPub(t *testing.T, m *lab.Master) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(m.PKIDir(), "master.pub"))
	labtest.Must(t, err)
	return saltcrypt.CleanKey(string(raw))
}

// Options of real minions that change what is on the wire, and what must not be noticed by any of them.
func TestWire(t *testing.T) {
	c := wireCluster(t)
	var masters []*lab.Master
	for _, n := range c.Nodes {
		masters = append(masters, n.Master)
	}
	bus := listen(t, masters...)
	bus.fence(t.Context(), t)
	t.Run("options", func(t *testing.T) { testWireOptions(t, c) })
	t.Run("a master's own key changes", func(t *testing.T) {
		unnoticed(t, c, bus, func() {
			rotateMasters(t, c, bus)
			for _, n := range c.Nodes {
				publish(t, c, n)
			}
		})
	})
	t.Run("masters restart and filter", func(t *testing.T) {
		unnoticed(t, c, bus, func() {
			restartMasters(t, c, "zmq_filtering", true)
			labtest.Must(t, c.Whole(t.Context(), 2*time.Minute))
			testWireOptions(t, c)
		})
	})
	t.Run("revocation", func(t *testing.T) { testRevocation(t, c, bus) })
	t.Run("masters restart and are silent about sign-ins", func(t *testing.T) {
		if os.Getenv("SALTCLUSTER_LONG") == "" {
			t.Skip("half a minute more; SALTCLUSTER_LONG=1 runs it")
		}
		testSilentSignIns(t, c, bus)
	})
}

// testSilentSignIns: an option that saltclusterd obeys itself holds from the master's restart on, without one of its
// own.
func testSilentSignIns(t *testing.T, c *lab.Cluster, bus *listeners) {
	ctx := t.Context()
	m := c.Minions[0]
	before := len(bus.signIns(m.ID))
	labtest.Must(t, m.Restart(ctx))
	eventually(t, time.Minute, "the event of a sign-in", func() bool { return len(bus.signIns(m.ID)) > before })
	restartMasters(t, c, "auth_events", false)
	before = len(bus.signIns(m.ID))
	labtest.Must(t, m.Restart(ctx))
	labtest.Must(t, c.Whole(ctx, 2*time.Minute))
	bus.fence(ctx, t)
	if n := len(bus.signIns(m.ID)) - before; n != 0 {
		t.Errorf("%d events of sign-ins although auth_events is off", n)
	}
}

// Everything works, from each master, for each minion.
func testWireOptions(t *testing.T, c *lab.Cluster) {
	var g errgroup.Group
	for _, n := range c.Nodes {
		g.Go(func() error {
			if err := wireJobs(t.Context(), c, n); err != nil {
				return fmt.Errorf("%s (%s): %w", n.Name, n.Master.Version, err)
			}
			return nil
		})
	}
	check.NoError(t, g.Wait())
}

// wireJobs publishes to all minions, one job of several functions because each start of the command line takes long,
// and to a list: a master that filters publishes that once for each of them, under a topic of its own.
func wireJobs(ctx context.Context, c *lab.Cluster, n *lab.Node) error {
	const file = "demo/files/plain.txt"
	want, err := os.ReadFile(filepath.Join(n.Master.FileRoot(), file))
	if err != nil {
		return err
	}
	got, err := n.Master.Pub(ctx, "min*", "test.ping,pillar.items,cp.get_file_str", ",", ",", "salt://"+file)
	if err != nil {
		return err
	}
	errs := []error{lab.AnsweredBy(got, c.IDs()...)}
	var some []string
	for _, m := range c.Minions {
		ret, _ := got[m.ID].(map[string]any)
		text, _ := ret["cp.get_file_str"].(string)
		err := errors.Join(m.CheckPing(ret["test.ping"]), m.CheckPillar(ret["pillar.items"]))
		if strings.TrimSpace(text) != strings.TrimSpace(string(want)) {
			err = errors.Join(err, fmt.Errorf("the file is %q", text))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.ID, err))
		}
		if strings.HasSuffix(m.ID, "sha224") {
			some = append(some, m.ID)
		}
	}
	got, err = n.Master.Pub(ctx, "-L", strings.Join(some, ","), "test.ping")
	if err == nil {
		err = lab.AnsweredBy(got, some...)
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("list: %w", err))
	}
	return errors.Join(errs...)
}

// unnoticed runs f, during which no minion may sign in.
func unnoticed(t *testing.T, c *lab.Cluster, bus *listeners, f func()) {
	t.Helper()
	ctx := t.Context()
	before, rotated := acceptedSignIns(t, c), epochsBegun(t, c)
	f()
	bus.fence(ctx, t)
	if after := acceptedSignIns(t, c); after != before {
		t.Errorf("%v sign-ins were accepted meanwhile", after-before)
	}
	if now := epochsBegun(t, c); now != rotated {
		t.Errorf("the cluster's AES key was rotated %d times", now-rotated)
	}
}

// rotateMasters makes every master change its AES key as it does after any salt-key -d: here that of a pending key,
// which is no reason for the cluster to change its own.
func rotateMasters(t *testing.T, c *lab.Cluster, bus *listeners) {
	ctx := t.Context()
	key, err := saltcrypt.GenerateMasterKey(2048)
	labtest.Must(t, err)
	for _, n := range c.Nodes {
		m := &byteMinion{
			host: c.Minions[0].Host(), id: "nobody-" + n.Name, key: key, enc: saltcrypt.OAEPSHA1, sig: saltcrypt.PKCS1v15SHA1,
		}
		heard, err := m.signIn(ctx, n.Addr)
		labtest.Must(t, err)
		if heard != "pending" {
			t.Fatalf("%s hears %q", m.id, heard)
		}
		res, err := n.Master.Run(ctx, "salt-key", "-y", "-d", m.id)
		labtest.Must(t, err)
		labtest.Must(t, res.Err())
		keyIs(t, c, m.id, "", 15*time.Second)
	}
	for _, n := range c.Nodes {
		eventually(t, time.Minute, n.Name+" to change its AES key", func() bool { return bus.count(n.Name, "key") > 0 })
	}
}

// restartMasters restarts all masters with another option.
func restartMasters(t *testing.T, c *lab.Cluster, option string, value bool) {
	t.Helper()
	g, ctx := errgroup.WithContext(t.Context())
	for _, n := range c.Nodes {
		g.Go(func() error {
			if err := n.Master.Stop(ctx); err != nil {
				return err
			}
			if err := n.Master.Configure(wireMasters, lab.Settings{option: value}); err != nil {
				return err
			}
			if err := n.Master.Start(ctx); err != nil {
				return err
			}
			if err := n.Master.WaitReady(ctx, 3*time.Minute); err != nil {
				return err
			}
			return c.Answering(ctx, n) // its workers come up after its ports
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(fmt.Errorf("restart masters: %w", err))
	}
}
