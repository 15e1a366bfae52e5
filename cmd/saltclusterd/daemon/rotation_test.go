package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/cmd/saltclusterd/rotation"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

// Rotate asks as operators do.
func (n *testNode) Rotate(ctx context.Context, r adminapi.RotateRequest, p admin.Progress) (adminapi.Outcome, error) {
	return rotation.Verbs{Of: n.rotations}.Rotate(ctx, r, p)
}

func rotate(t *testing.T, on *testNode, r adminapi.RotateRequest) adminapi.Outcome {
	t.Helper()
	var out adminapi.Outcome
	// The others' gossip says what they understand, and on a slow machine the leader may just have gone.
	passing := []adminapi.Code{adminapi.CodeUnavailable, adminapi.CodeRefused, adminapi.CodeNoQuorum}
	eventually(t, "rotate "+r.What, func() (err error) {
		ctx, cancel := context.WithTimeout(t.Context(), longest)
		defer cancel()
		if out, err = on.Rotate(ctx, r, quiet); slices.Contains(passing, adminapi.CodeOf(err)) {
			return err
		}
		require.NoError(t, err)
		return nil
	})
	return out
}

// dials says whether a node reaches another one on a new connection.
func dials(from *testNode, to node.ID) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := from.tenure.Current().Port.Dial(ctx, to, peer.ProtoRaft)
	if err != nil {
		return err
	}
	return peer.Cut(c)
}

// The certificates are replaced twice while one node is down. It comes back without help.
func TestRotateCertificates(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	nodes := cluster(t, dirs...)
	a, b, c := nodes[0], nodes[1], nodes[2]
	before := map[node.ID]node.Fingerprint{}
	for _, n := range nodes {
		before[n.id] = n.identity.Fingerprint()
	}
	dry := rotate(t, a, adminapi.RotateRequest{What: adminapi.RotateCertificates, DryRun: true})
	if !strings.Contains(dry.Message, "nothing was changed") || a.identity.Fingerprint() != before["a"] {
		t.Errorf("a dry run: %+v", dry)
	}
	c.halt()
	eventually(t, "the loss of c", func() error {
		if a.tenure.Current().Alive("c") || b.tenure.Current().Alive("c") {
			return errors.New("it is seen")
		}
		return nil
	})
	out := rotate(t, a, adminapi.RotateRequest{What: adminapi.RotateCertificates})
	if out.Message != "new certificates: b, a" || len(out.Next) != 1 || !strings.Contains(out.Next[0], "c is down") {
		t.Errorf("b, then this node, and that c is down: %+v", out)
	}
	rotate(t, a, adminapi.RotateRequest{What: adminapi.RotateCertificates, Node: "a"})
	for _, n := range []*testNode{a, b} {
		eventually(t, "the certificate of "+string(n.id), func() error {
			for _, on := range []*testNode{a, b} {
				e, ok := on.tenure.Current().Roster.Lookup(n.id)
				if !ok || e.Fingerprint == before[n.id] || e.Fingerprint != n.identity.Fingerprint() {
					return fmt.Errorf("%s knows %s of it", on.id, e.Fingerprint.Short())
				}
			}
			return errors.Join(dials(a, "b"), dials(b, "a"))
		})
	}
	if _, err := a.Rotate(t.Context(), adminapi.RotateRequest{What: adminapi.RotateCertificates, Node: "nobody"},
		quiet); adminapi.CodeOf(err) != adminapi.CodeNotFound {
		t.Errorf("of nobody: %v", err)
	}
	c = startNode(t, "c", dirs[2])
	eventually(t, "the node that was down", wantRoles(c, "a voter alive", "b voter alive", "c voter alive"))
	a.halt() // what was renewed is what is on disk
	a = startNode(t, "a", dirs[0])
	eventually(t, "the node that was restarted", wantRoles(a, "a voter alive", "b voter alive", "c voter alive"))
}

// A renewal that was interrupted before it was announced is announced after the restart.
func TestCertificate_AnnouncedAfterRestart(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	nodes := cluster(t, dirs...)
	b := nodes[1]
	b.halt()
	ident, err := peer.LoadIdentity(b.cfg.Paths.StateDir, "b")
	require.NoError(t, err)
	if _, _, err := ident.Renew(b.cfg.Paths.StateDir, time.Now()); err != nil {
		t.Fatal(err)
	}
	b = startNode(t, "b", dirs[1])
	eventually(t, "the node with a certificate that nobody knows",
		wantRoles(b, "a voter alive", "b voter alive", "c voter alive"))
	eventually(t, "its announcement", func() error {
		if e, _ := nodes[0].tenure.Current().Roster.Lookup("b"); e.Fingerprint != ident.Fingerprint() {
			return errors.New("the others know the old one")
		}
		return nil
	})
}

func TestRotateGossipKeyAndSecret(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, t.TempDir(), t.TempDir())
	a, b := nodes[0], nodes[1]
	was := a.tenure.Current().Consensus.View().GossipKeys()[0].N
	rotate(t, b, adminapi.RotateRequest{What: adminapi.RotateGossipKey, DryRun: true})
	if out := rotate(t, b, adminapi.RotateRequest{What: adminapi.RotateGossipKey}); !strings.Contains(out.Message,
		"only gossip key number") {
		t.Errorf("%+v", out)
	}
	if keys := b.tenure.Current().Consensus.View().GossipKeys(); len(keys) != 1 || keys[0].N <= was {
		t.Errorf("%d keys, the first number %d", len(keys), keys[0].N)
	}
	eventually(t, "members", wantRoles(a, "a voter alive", "b voter alive"))

	const second = "the-second-secret-0123456789-xyz"
	if _, err := a.Rotate(t.Context(), adminapi.RotateRequest{What: adminapi.RotateSecret, Secret: "short"},
		quiet); adminapi.CodeOf(err) != adminapi.CodeInvalid {
		t.Errorf("a short secret: %v", err)
	}
	if _, err := a.Rotate(t.Context(), adminapi.RotateRequest{What: adminapi.RotateSecret, Finish: true},
		quiet); adminapi.CodeOf(err) != adminapi.CodeRefused {
		t.Errorf("finish of nothing: %v", err)
	}
	rotate(t, a, adminapi.RotateRequest{What: adminapi.RotateSecret, Secret: second})
	st, err := a.Status(t.Context())
	if err != nil || !slices.ContainsFunc(st.Problems,
		func(p adminapi.Problem) bool { return strings.Contains(p.Message, "two cluster secrets") }) {
		t.Errorf("nothing is said of two secrets: %+v, %v", st.Problems, err)
	}
	if _, err := a.Rotate(t.Context(), adminapi.RotateRequest{What: adminapi.RotateSecret, Secret: second + "2"},
		quiet); adminapi.CodeOf(err) != adminapi.CodeRefused {
		t.Errorf("a second rotation before the end of the first: %v", err)
	}
	join := func(n *testNode, secret adminapi.Secret) error {
		ctx, cancel := context.WithTimeout(t.Context(), longest)
		defer cancel()
		_, err := n.Join(ctx, adminapi.JoinRequest{Peer: a.addr, Secret: secret}, quiet)
		return err
	}
	c, d, e := startNode(t, "c", t.TempDir()), startNode(t, "d", t.TempDir()), startNode(t, "e", t.TempDir())
	check.NoError(t, join(c, ""), "the configured one, while both are accepted")
	check.NoError(t, join(d, second), "the new one")
	rotate(t, b, adminapi.RotateRequest{What: adminapi.RotateSecret, Finish: true})
	eventually(t, "the end of the old one on a", func() error {
		if a.tenure.Current().Consensus.View().JoinSecrets().Overlap {
			return errors.New("not yet")
		}
		return nil
	})
	if err := join(e, ""); err == nil || !strings.Contains(err.Error(), "cluster_secret") {
		t.Errorf("the old one, afterwards: %v", err)
	}
	eventually(t, "the new one", func() error { return join(e, second) }) // the wrong one made the address wait
	if _, err := a.Rotate(t.Context(), adminapi.RotateRequest{What: "nonsense"},
		quiet); adminapi.CodeOf(err) != adminapi.CodeInvalid {
		t.Errorf("nonsense: %v", err)
	}
}
