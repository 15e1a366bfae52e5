package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/consensus/state"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
)

func TestDueIdentity(t *testing.T) {
	t.Parallel()
	staged := state.IdentityChange{Stage: state.IdentityStaged, FP: "new", Former: "old"}
	switched := state.IdentityChange{Stage: state.IdentitySwitched, FP: "new", Former: "old"}
	for _, c := range []struct {
		own, inForce string
		change       state.IdentityChange
		want         identityDuty
	}{
		{"", "old", staged, identityRest}, // the state is not known yet, or this node's key
		{"old", "", state.IdentityChange{}, identityRest},
		{"old", "old", state.IdentityChange{}, identityForget},
		{"old", "old", staged, identityServe},
		{"old", "new", switched, identityTake},
		{"new", "new", switched, identityFollow},
		{"new", "new", state.IdentityChange{}, identityForget},
		{"old", "new", state.IdentityChange{}, identityLost}, // finished without it
		{"older", "old", staged, identityLost},
		{"older", "new", switched, identityLost},
	} {
		if got := dueIdentity(c.own, c.inForce, c.change); got != c.want {
			t.Errorf("%s, %s in force, %s: %d, want %d", c.own, c.inForce, c.change.Stage, got, c.want)
		}
	}
}

func TestPins(t *testing.T) {
	t.Parallel()
	at := func(s int64) time.Time { return time.Unix(s, 0).UTC() }
	var a pins
	a.note("early", "old", at(1))
	if a.about(""); len(a.list().Pins) != 0 {
		t.Error("pins are kept though nothing is under way")
	}
	if !a.about("new") || a.about("new") {
		t.Error("news of a change")
	}
	for id, fp := range map[string]string{"told": "new", "untold": "old", "moved": "old"} {
		if a.note(id, fp, at(10)) {
			t.Errorf("%s refuses us", id)
		}
	}
	if !a.note("alien", "", at(10)) || a.note("alien", "", at(11)) {
		t.Error("who refuses us is said once")
	}
	if a.note("alien", "old", at(12)); !a.note("alien", "", at(13)) {
		t.Error("who refuses us again is not said")
	}
	text, err := json.Marshal(a.list())
	if err != nil {
		t.Fatal(err)
	}
	kept, err := parsePins(text)
	if err != nil {
		t.Fatal(err)
	}
	var b pins
	b.about("new")
	b.note("moved", "new", at(20))
	b.recall(kept)
	if got := b.list().Pins; len(got) != 4 || got["moved"].FP != "new" || got["told"].FP != "new" {
		t.Errorf("what was known before: %v", got)
	}
	b.about("another")
	if b.recall(kept); len(b.list().Pins) != 0 {
		t.Error("pins of another change are taken over")
	}
	other := pinList{Change: "other", Pins: map[string]pin{"untold": {"new", at(99)}}}
	s := sortMinions([]string{"told", "untold", "moved", "alien", "away"}, latestPins("new", []pinList{
		kept, other, {Change: "new", Pins: map[string]pin{"moved": {"new", at(20)}, "told": {"old", at(5)}}},
	}), "new")
	if !slices.Equal(s.ready, []string{"told", "moved"}) || !slices.Equal(s.former, []string{"untold"}) ||
		!slices.Equal(s.foreign, []string{"alien"}) || !slices.Equal(s.unseen, []string{"away"}) || s.behind() != 3 {
		t.Errorf("%+v", s)
	}
	if lines := strings.Join(s.lines(), "\n"); !strings.Contains(lines, "away, 1") && !strings.Contains(lines, ": away") {
		t.Errorf("%s", lines)
	}
	for i := range maxForeign + 5 {
		a.note(fmt.Sprint("m", i), "", at(1))
	}
	if len(a.foreign) > maxForeign {
		t.Errorf("%d minions are remembered for refusing us", len(a.foreign))
	}
}

// The steps as an operator takes them, on nodes that are killed wherever they stand: what was begun is gone on with.
func TestRotateIdentity(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir()}
	nodes := cluster(t, dirs...)
	a, b := nodes[0], nodes[1]
	step := func(on *testNode, name string) (adminapi.Outcome, error) {
		return on.Rotate(t.Context(), adminapi.RotateRequest{What: adminapi.RotateIdentity, Step: name}, quiet)
	}
	first := a.current().fingerprint
	rotate(t, a, adminapi.RotateRequest{What: adminapi.RotateIdentity, Step: adminapi.IdentityPrepare})
	eventually(t, "the staged identity at b", func() error {
		c := b.current().cons.View().IdentityChange()
		if c.Stage != state.IdentityStaged {
			return errors.New("it is not known")
		}
		private, err := b.current().openIdentity(c.Sealed, c.FP)
		if err != nil {
			return err
		}
		key, err := saltcrypt.ParseMasterKey(private)
		if err == nil && key.PublicText() != c.Public {
			err = errors.New("it is another one")
		}
		return err
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
	next := b.current().cons.View().IdentityChange()
	rotate(t, a, adminapi.RotateRequest{What: adminapi.RotateIdentity, Step: adminapi.IdentitySwitch})

	has := func(n *testNode, fp string) error {
		key, _, public, err := membership.ReadIdentity(n.cfg.Cluster.PKIDir)
		if err == nil && (saltcrypt.Fingerprint(key.PublicText()) != fp || saltcrypt.CleanKey(string(public)) != key.PublicText()) {
			err = errors.New("it has another identity")
		}
		return err
	}
	eventually(t, "a to take it", func() error { return has(a, next.FP) }) // it cannot start another program here, so it goes on
	if a.current().fingerprint != first {
		t.Error("a process has changed its identity")
	}
	a.halt()
	_, public := membership.IdentityPaths(a.cfg.Cluster.PKIDir)
	if err := os.WriteFile(public, []byte("cut off"), 0o600); err != nil { // as if it had been killed between the two files
		t.Fatal(err)
	}
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
		v := b.current().cons.View()
		if v.IdentityChange().Stage != state.NoIdentity || v.Identity().IdentityFP != next.FP {
			return fmt.Errorf("%q, %s", v.IdentityChange().Stage, v.Identity().IdentityFP)
		}
		return nil
	})
}

func FuzzParsePins(f *testing.F) {
	f.Add([]byte(`{"change":"ab","pins":{"web1":{"fp":"ab","at":"2026-01-02T03:04:05Z"}}}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := parsePins(b)
		if err != nil {
			return
		}
		var p pins
		p.about(list.Change)
		p.recall(list)
		if got := p.list(); list.Change != "" && len(got.Pins) != len(list.Pins) {
			t.Errorf("%d pins of %d", len(got.Pins), len(list.Pins))
		}
	})
}
