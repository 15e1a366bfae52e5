package daemon

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/consensus/state"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
)

// All steps of a change, with nodes that are killed in the middle: the change is continued after a restart.
func TestRotateIdentity(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir()}
	nodes := cluster(t, dirs...)
	a, b := nodes[0], nodes[1]
	step := func(on *testNode, name string) (adminapi.Outcome, error) {
		return on.Rotate(t.Context(), adminapi.RotateRequest{What: adminapi.RotateIdentity, Step: name}, quiet)
	}
	first := a.tenure.Current().fingerprint
	rotate(t, a, adminapi.RotateRequest{What: adminapi.RotateIdentity, Step: adminapi.IdentityPrepare})
	eventually(t, "the staged identity at b", func() error {
		c := b.tenure.Current().Consensus.View().IdentityChange()
		if c.Stage != state.IdentityStaged {
			return errors.New("it is not known")
		}
		second, _ := b.tenure.Current().identity.Second()
		if second == nil {
			return errors.New("it is not answered for")
		}
		if second.Identity.PublicText() != c.Public {
			return errors.New("it is another one")
		}
		return nil
	})
	for _, wrong := range []string{adminapi.IdentityPrepare, adminapi.IdentityFinish} {
		if _, err := step(b, wrong); adminapi.CodeOf(err) != adminapi.CodeRefused {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	if _, err := step(b, "nonsense"); adminapi.CodeOf(err) != adminapi.CodeInvalid {
		t.Errorf("a step that there is not: %v", err)
	}
	rotate(t, b, adminapi.RotateRequest{What: adminapi.RotateIdentity, Step: adminapi.IdentityAbort})
	rotate(t, b, adminapi.RotateRequest{What: adminapi.RotateIdentity, Step: adminapi.IdentityPrepare})
	next := b.tenure.Current().Consensus.View().IdentityChange()
	rotate(t, a, adminapi.RotateRequest{What: adminapi.RotateIdentity, Step: adminapi.IdentitySwitch})

	has := func(n *testNode, fp string) error {
		key, _, public, err := membership.ReadIdentity(n.cfg.Cluster.PKIDir)
		if err == nil && (saltcrypt.Fingerprint(key.PublicText()) != fp ||
			saltcrypt.CleanKey(string(public)) != key.PublicText()) {
			err = errors.New("it has another identity")
		}
		return err
	}
	// no other process can take over in a test, so it serves on
	eventually(t, "a to take it", func() error { return has(a, next.FP) })
	if a.tenure.Current().fingerprint != first {
		t.Error("a process has changed its identity")
	}
	a.halt()
	_, public := membership.IdentityPaths(a.cfg.Cluster.PKIDir)
	// as if it had been killed between the two files
	require.NoError(t, os.WriteFile(public, []byte("cut off"), 0o600))
	eventually(t, "b to take it, for a is away", func() error { return has(b, next.FP) })
	b.halt()
	a, b = startNode(t, "a", dirs[0]), startNode(t, "b", dirs[1])
	eventually(t, "members", wantRoles(a, "a voter alive", "b voter alive"))
	for _, n := range []*testNode{a, b} {
		eventually(t, "the master's files of "+string(n.id), func() error {
			private, _, err := localmaster.ReadIdentity(n.master)
			if err != nil {
				return err
			}
			key, err := saltcrypt.ParseMasterKey(private)
			if err == nil && saltcrypt.Fingerprint(key.PublicText()) != next.FP {
				err = errors.New("they are the old ones")
			}
			return errors.Join(err, has(n, next.FP))
		})
	}
	if _, err := step(a, adminapi.IdentityAbort); adminapi.CodeOf(err) != adminapi.CodeRefused {
		t.Errorf("given up after the switch: %v", err)
	}
	if _, err := step(a, adminapi.IdentityFinish); adminapi.CodeOf(err) != adminapi.CodeRefused {
		t.Errorf("finished before the masters show it: %v", err) // there are none
	}
	rotate(t, a, adminapi.RotateRequest{What: adminapi.RotateIdentity, Step: adminapi.IdentityFinish, Force: true})
	eventually(t, "the end", func() error {
		v := b.tenure.Current().Consensus.View()
		if v.IdentityChange().Stage != state.NoIdentity || v.Identity().IdentityFP != next.FP {
			return fmt.Errorf("%q, %s", v.IdentityChange().Stage, v.Identity().IdentityFP)
		}
		return nil
	})
}
