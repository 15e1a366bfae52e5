package epochs

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
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
	require.NoError(t, err)
	f := &fixture{now: time.Unix(1000, 0), key: key}
	f.Manager = New(key, func() time.Time { return f.now }, func(id string, _ uint64) { f.told = append(f.told, id) })
	return f
}

// begin begins epoch n at revision 10*n; revoked is the revision of the last removal of a key.
func (f *fixture) begin(t *testing.T, n, revoked uint64, window time.Duration) bool {
	t.Helper()
	key, err := saltcrypt.NewKey()
	require.NoError(t, err)
	news, err := f.Begin(Epoch{Number: n, Key: key, Rev: 10 * n, RevokedRev: revoked}, window)
	require.NoError(t, err)
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

func TestSealing_ScheduledRotation(t *testing.T) {
	f := newFixture(t)
	f.begin(t, 1, 0, time.Minute)
	if got := numbers(f.Sealing()); !slices.Equal(got, []uint64{1}) {
		t.Fatalf("first epoch: %v", got)
	}
	f.begin(t, 2, 0, time.Minute)
	if got := numbers(f.Sealing()); !slices.Equal(got, []uint64{2, 1}) {
		t.Fatalf("inside the window: %v", got)
	}
	f.now = f.now.Add(time.Minute)
	if got := numbers(f.Sealing()); !slices.Equal(got, []uint64{2}) {
		t.Fatalf("after the window: %v", got)
	}
}

func TestSealing_Revocation(t *testing.T) {
	f := newFixture(t)
	f.begin(t, 1, 0, 0)
	f.begin(t, 2, 15, time.Minute)
	if got := numbers(f.Sealing()); !slices.Equal(got, []uint64{2}) {
		t.Fatalf("sealing under %v", got)
	}
	if got := f.ForSignIn("web1").Number; got != 2 {
		t.Fatalf("sign-in answered with epoch %d", got)
	}
}

// Whether the epoch before is dead is decided by what this node holds: by removals since that began.
func TestSealing_RemovalsSinceHeldEpoch(t *testing.T) {
	type step struct{ epoch, revoked uint64 }
	for name, c := range map[string]struct {
		steps []step
		want  []uint64
	}{
		"none":                              {[]step{{1, 0}, {2, 0}}, []uint64{2, 1}},
		"one before it":                     {[]step{{1, 5}, {2, 5}}, []uint64{2, 1}},
		"one since, rotated for its own":    {[]step{{1, 0}, {2, 19}}, []uint64{2}},
		"one since, and epochs skipped":     {[]step{{1, 0}, {3, 15}}, []uint64{3}},
		"one later than the epoch in force": {[]step{{1, 0}, {2, 25}}, []uint64{2}},
		"one, rotated, and another age":     {[]step{{1, 0}, {2, 15}, {3, 15}}, []uint64{3, 2}},
		"one inside a window":               {[]step{{1, 0}, {2, 0}, {3, 25}}, []uint64{3}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			for _, s := range c.steps {
				f.begin(t, s.epoch, s.revoked, time.Hour)
			}
			check.EqualSlices(t, numbers(f.Sealing()), c.want, "sealing under")
		})
	}
}

// Inside the window a minion's sign-ins get the two epochs in turn.
func TestForSignIn_InsideWindow(t *testing.T) {
	f := newFixture(t)
	f.begin(t, 1, 0, 0)
	f.ForSignIn("web1")
	if len(f.told) != 0 {
		t.Fatal("announced outside a window")
	}
	f.begin(t, 2, 0, time.Minute)
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
	f.begin(t, 2, 0, 0)
	key := f.Current().KeyText
	for _, n := range []uint64{1, 2} {
		if f.begin(t, n, 25, time.Minute) {
			t.Errorf("epoch %d was news after 2", n)
		}
	}
	check.Equal(t, f.Current().KeyText, key, "the key changed")
}

func TestSignatureIsWhatMinionsCheck(t *testing.T) {
	f := newFixture(t)
	f.begin(t, 1, 0, 0)
	m := f.Current()
	got, err := f.key.Public().VerifyX931(m.Sig)
	require.NoError(t, err)
	sum := sha256.Sum256([]byte(m.KeyText))
	if string(got) != hex.EncodeToString(sum[:]) {
		t.Errorf("signed %q", got)
	}
}
