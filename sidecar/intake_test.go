package sidecar

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// fakeMaster hands out the key it publishes with.
type fakeMaster struct {
	key     saltcrypt.Key
	pub     string
	signIns int
	err     error
}

func (f *fakeMaster) SignIn(context.Context) (localmaster.Secrets, error) {
	f.signIns++
	return localmaster.Secrets{AES: f.key, MasterPub: f.pub, PublishPort: 4505, At: time.Now()}, f.err
}

func (f *fakeMaster) publish(t *testing.T, text string) []byte {
	t.Helper()
	plain, err := saltwire.AppendAny(nil, map[string]any{"jid": text}, saltwire.Wire)
	require.NoError(t, err)
	return saltwire.AppendPub(nil, saltcrypt.NewCrypticle(f.key).Seal(nil, plain, nil), nil, "")
}

func newKey(t testing.TB) saltcrypt.Key {
	t.Helper()
	k, err := saltcrypt.NewKey()
	require.NoError(t, err)
	return k
}

func TestIntakeFollowsTheMastersKey(t *testing.T) {
	m := &fakeMaster{key: newKey(t), pub: "cluster"}
	var got []fanout.Publication
	in := NewIntake(IntakeConfig{
		SignIn: m, ClusterPub: "cluster", Logger: slog.New(slog.DiscardHandler),
		Deliver: func(p fanout.Publication) error { got = append(got, p); return nil },
	})
	in.Message(t.Context(), [][]byte{m.publish(t, "1")}) // no key yet: it signs in by itself
	in.Message(t.Context(), [][]byte{m.publish(t, "2")})
	if len(got) != 2 || m.signIns != 1 {
		t.Fatalf("%d publications after %d sign-ins", len(got), m.signIns)
	}
	m.key = newKey(t) // the master was restarted
	in.Message(t.Context(), [][]byte{m.publish(t, "3")})
	if len(got) != 3 || m.signIns != 2 {
		t.Fatalf("%d publications after %d sign-ins", len(got), m.signIns)
	}
	if ok, err := in.State(); !ok || err != nil {
		t.Errorf("state %t, %v", ok, err)
	}
}

func TestIntakeTellsCopiesFromPublications(t *testing.T) {
	m := &fakeMaster{key: newKey(t), pub: "cluster"}
	var got []fanout.Publication
	in := NewIntake(IntakeConfig{
		SignIn: m, ClusterPub: "cluster", Logger: slog.New(slog.DiscardHandler),
		Deliver: func(p fanout.Publication) error { got = append(got, p); return nil },
	})
	body := m.publish(t, "1")
	for _, topic := range []string{"aaaa", "bbbb"} { // zmq_filtering: one copy per target
		in.Message(t.Context(), [][]byte{[]byte(topic), body})
	}
	in.Message(t.Context(), [][]byte{[]byte("a"), []byte("b"), []byte("c")})
	if len(got) != 2 {
		t.Fatalf("%d publications", len(got))
	}
	if got[0].TopicOnly || !got[1].TopicOnly || got[1].Topics[0] != "bbbb" {
		t.Errorf("%+v", got)
	}
}

// TestIntakeDoesNotKeepPublications: what it remembers to tell copies from is little, however large the publications
// are.
func TestIntakeDoesNotKeepPublications(t *testing.T) {
	m := &fakeMaster{key: newKey(t), pub: "cluster"}
	in := NewIntake(IntakeConfig{
		SignIn: m, ClusterPub: "cluster", Logger: slog.New(slog.DiscardHandler),
		Deliver: func(fanout.Publication) error { return nil },
	})
	large := strings.Repeat("x", 1<<20)
	kept := func() (n int) {
		for _, r := range in.recent {
			n += len(r.plain)
		}
		return n
	}
	for i := range recentBodies {
		in.Message(t.Context(), [][]byte{m.publish(t, fmt.Sprint(i, large))}) // without topics there are no copies
	}
	if n := kept(); n > 0 {
		t.Errorf("%d bytes of publications that have no copies are kept", n)
	}
	var last []byte
	for i := range recentBodies {
		last = m.publish(t, fmt.Sprint(i, large))
		in.Message(t.Context(), [][]byte{[]byte("aaaa"), last})
	}
	if n := kept(); n > 2<<20 {
		t.Errorf("%d bytes of publications are kept", n)
	}
	if _, seen := in.findSeen(sha256.Sum256(last)); !seen {
		t.Error("copies of the newest would not be told from it")
	}
}

func TestIntakeRefusesAForeignIdentity(t *testing.T) {
	m := &fakeMaster{key: newKey(t), pub: "another"}
	in := NewIntake(IntakeConfig{SignIn: m, ClusterPub: "cluster", Logger: slog.New(slog.DiscardHandler)})
	if err := in.Learn(t.Context()); !errors.Is(err, ErrForeignIdentity) {
		t.Fatalf("Learn: %v", err)
	}
	if ok, err := in.State(); ok || !errors.Is(err, ErrForeignIdentity) {
		t.Errorf("state %t, %v", ok, err)
	}
}

func TestIntake_FailingSince(t *testing.T) {
	m := &fakeMaster{key: newKey(t), pub: "another"}
	in := NewIntake(IntakeConfig{SignIn: m, ClusterPub: "cluster", Logger: slog.New(slog.DiscardHandler)})
	if since := in.FailingSince(); !since.IsZero() {
		t.Errorf("before any: %v", since)
	}
	_ = in.Learn(t.Context())
	first := in.FailingSince()
	if _ = in.Learn(t.Context()); first.IsZero() || !in.FailingSince().Equal(first) {
		t.Errorf("the first at %v, then %v", first, in.FailingSince())
	}
	m.pub = "cluster"
	if err := in.Learn(t.Context()); err != nil || !in.FailingSince().IsZero() {
		t.Errorf("after one that did not: %v, %v", in.FailingSince(), err)
	}
}

func TestIntake_ExportImport(t *testing.T) {
	m := &fakeMaster{key: newKey(t), pub: "cluster"}
	var got []fanout.Publication
	cfg := IntakeConfig{
		SignIn: m, ClusterPub: "cluster", Logger: slog.New(slog.DiscardHandler),
		Deliver: func(p fanout.Publication) error { got = append(got, p); return nil },
	}
	in, next := NewIntake(cfg), NewIntake(cfg)
	body := m.publish(t, "1")
	in.Message(t.Context(), [][]byte{[]byte("aaaa"), body})
	require.NoError(t, next.Import(in.Export()))
	next.Message(t.Context(), [][]byte{[]byte("bbbb"), body}) // the second copy of one publication
	next.Message(t.Context(), [][]byte{m.publish(t, "2")})
	if len(got) != 3 || !got[1].TopicOnly || got[2].TopicOnly || m.signIns != 1 {
		t.Errorf("%+v after %d sign-ins", got, m.signIns)
	}
	check.NoError(t, NewIntake(cfg).Import(NewIntake(cfg).Export())) // the key was not known
}

func FuzzIntakeImport(f *testing.F) {
	f.Add(NewIntake(IntakeConfig{}).Export())
	f.Fuzz(func(_ *testing.T, b []byte) { _ = NewIntake(IntakeConfig{}).Import(b) })
}
