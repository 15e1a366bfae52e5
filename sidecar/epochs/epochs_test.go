package epochs

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"testing"
	"time"

	"saltclusterd/sidecar/saltcrypt"
)

type fixture struct {
	*Manager
	now  time.Time
	told []string
	key  *saltcrypt.MasterKey
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	key, err := saltcrypt.GenerateMasterKey(2048)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{now: time.Unix(1000, 0), key: key}
	f.Manager = New(key, func() time.Time { return f.now }, func(id string, _ uint64) { f.told = append(f.told, id) })
	return f
}

func (f *fixture) begin(t *testing.T, n uint64, revoked bool, window time.Duration) bool {
	t.Helper()
	key, err := saltcrypt.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	news, err := f.Begin(Epoch{Number: n, Key: key, Revoked: revoked}, window)
	if err != nil {
		t.Fatal(err)
	}
	return news
}

func numbers(cur, prev *Material) []uint64 {
	var out []uint64
	for _, m := range []*Material{cur, prev} {
		if m != nil {
			out = append(out, m.Number)
		}
	}
	return out
}

func TestScheduledRotationSealsTwiceForAWindow(t *testing.T) {
	f := newFixture(t)
	f.begin(t, 1, false, time.Minute)
	if got := numbers(f.Sealing()); !slices.Equal(got, []uint64{1}) {
		t.Fatalf("first epoch: %v", got)
	}
	f.begin(t, 2, false, time.Minute)
	if got := numbers(f.Sealing()); !slices.Equal(got, []uint64{2, 1}) {
		t.Fatalf("inside the window: %v", got)
	}
	f.now = f.now.Add(time.Minute)
	if got := numbers(f.Sealing()); !slices.Equal(got, []uint64{2}) {
		t.Fatalf("after the window: %v", got)
	}
}

func TestRevocationKillsTheOldEpochAtOnce(t *testing.T) {
	f := newFixture(t)
	f.begin(t, 1, false, 0)
	f.begin(t, 2, true, time.Minute)
	if got := numbers(f.Sealing()); !slices.Equal(got, []uint64{2}) {
		t.Fatalf("sealing under %v", got)
	}
	if got := f.ForSignIn("web1").Number; got != 2 {
		t.Fatalf("sign-in answered with epoch %d", got)
	}
}

func TestSignInInsideTheWindowGetsTheOtherEpoch(t *testing.T) {
	f := newFixture(t)
	f.begin(t, 1, false, 0)
	f.ForSignIn("web1")
	if len(f.told) != 0 {
		t.Fatal("announced outside a window")
	}
	f.begin(t, 2, false, time.Minute)
	var got []uint64
	for range 3 {
		got = append(got, f.ForSignIn("web1").Number)
	}
	if want := []uint64{2, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("sign-ins one after the other: %v, want %v", got, want)
	}
	f.Given("web2", 2) // another node answered that one
	if got := f.ForSignIn("web2").Number; got != 1 {
		t.Errorf("web2 got epoch %d here after 2 elsewhere", got)
	}
	if len(f.told) != 4 {
		t.Errorf("announced %v", f.told)
	}
}

func TestOldNewsChangesNothing(t *testing.T) {
	f := newFixture(t)
	f.begin(t, 2, false, 0)
	key := f.Current().KeyText
	for _, n := range []uint64{1, 2} {
		if f.begin(t, n, true, time.Minute) {
			t.Errorf("epoch %d was news after 2", n)
		}
	}
	if f.Current().KeyText != key {
		t.Error("the key changed")
	}
}

func TestSignatureIsWhatMinionsCheck(t *testing.T) {
	f := newFixture(t)
	f.begin(t, 1, false, 0)
	m := f.Current()
	got, err := f.key.Public().VerifyX931(m.Sig)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(m.KeyText))
	if string(got) != hex.EncodeToString(sum[:]) {
		t.Errorf("signed %q", got)
	}
}
