package daemon

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/msgpack"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
)

// lay writes what the master of a node has: keys, grains and mines of minions.
func (n *testNode) lay(t *testing.T, minions int) {
	t.Helper()
	pub := minionKey(t)
	cache := filepath.Join(n.dir, "var/cache/salt/master")
	file := func(path, text string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		write(t, path, text, 0o600)
	}
	blob := func(key, value string) string {
		return string(msgpack.AppendShort(msgpack.AppendShort(msgpack.AppendMapHead(nil, 1), key), value))
	}
	for i := range minions {
		id := fmt.Sprintf("web%03d", i)
		file(filepath.Join(n.dir, "etc/salt/pki/master/minions", id), pub)
		file(filepath.Join(cache, "grains", id+".p"), blob("os", id))
		file(filepath.Join(cache, "mine", id+".p"), blob("fun", id))
	}
}

// known waits until a node knows what its master has of minions, which it looks for once a minute.
func (n *testNode) known(t *testing.T, minions int) {
	t.Helper()
	s := n.tenure.Current().service()
	eventually(t, "minion data of "+string(n.id), func() error {
		for i := range minions {
			id := fmt.Sprintf("web%03d", i)
			s.stores.Data.Touched(id)
			s.stores.Mines.Touched(id)
		}
		if a, b := s.stores.Data.Status().Minions, s.stores.Mines.Status().Minions; a != minions || b != minions {
			return fmt.Errorf("%d and %d", a, b)
		}
		return nil
	})
}

// has says what of lay is not on a node.
func (n *testNode) has(t *testing.T, minions int) error {
	t.Helper()
	cache := filepath.Join(n.dir, "var/cache/salt/master")
	var missing []error
	for _, dir := range []string{filepath.Join(n.dir, "etc/salt/pki/master/minions"), filepath.Join(cache, "grains"),
		filepath.Join(cache, "mine")} {
		names, err := filepath.Glob(filepath.Join(dir, "web*"))
		if err != nil || len(names) != minions {
			missing = append(missing, fmt.Errorf("%d in %s", len(names), dir))
		}
	}
	return errors.Join(missing...)
}

// A node that joins, through a member that does not lead, has all that its answers depend on before it serves anybody;
// it votes only then. So does a node that comes back.
func TestJoin_CatchUpBeforeServing(t *testing.T) {
	t.Parallel()
	const minions = 300
	a, b, c := newLaidNode(t, "a"), newLaidNode(t, "b"), newLaidNode(t, "c")
	a.lay(t, minions)
	ctx := t.Context()
	if _, err := a.Bootstrap(ctx, adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	a.known(t, minions)
	if _, err := b.Join(ctx, adminapi.JoinRequest{Peer: a.addr, Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	check.NoError(t, b.has(t, minions), "b is ready")
	if st := b.tenure.Current().Consensus.Status(); st.Leader == b.id {
		t.Fatal("the founder does not lead")
	}
	if _, err := c.Join(ctx, adminapi.JoinRequest{Peer: b.addr, Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	check.NoError(t, c.has(t, minions), "c is ready")
	eventually(t, "members", wantRoles(a, "a voter alive", "b voter alive", "c voter alive"))
	m, err := a.Members(ctx)
	require.NoError(t, err)
	for _, row := range m.Members {
		if len(row.Sync) > 0 {
			t.Errorf("%s is ready and still %s", row.ID, adminapi.SyncText(row.Sync))
		}
	}

	c.halt()
	require.NoError(t, os.RemoveAll(filepath.Join(c.dir, "var/cache/salt/master")))
	c = startNode(t, "c", c.dir)
	eventually(t, "c serves", func() error {
		if m := c.tenure.Current(); m == nil || !m.role.ready() {
			return errors.New("not ready")
		}
		return nil
	})
	check.NoError(t, c.has(t, minions), "c is back")
}

// A cluster agrees on the level that all its members support.
func TestLevel_Agreed(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, t.TempDir(), t.TempDir())
	for _, n := range nodes {
		eventually(t, "the level on "+string(n.id), func() error {
			if now := n.tenure.Current().Consensus.View().Level(); now != state.Level {
				return fmt.Errorf("it is %d", now)
			}
			return nil
		})
	}
}

func minionKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func newLaidNode(t *testing.T, id string) *testNode { return startNode(t, id, t.TempDir()) }
