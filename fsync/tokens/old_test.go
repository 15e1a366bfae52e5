package tokens

import (
	"encoding/hex"
	"os"
	"slices"
	"sync"
	"testing"

	"saltclusterd/fsync/replica/replicatest"
	"saltclusterd/integration/require"
)

// A member of an older version tells and is told in the bytes it knows.
func TestOldMember(t *testing.T) {
	w := newWorld(t, 3006)
	a := w.nodes["a"]
	var mu sync.Mutex
	var heard []string
	w.Play("old", func(body []byte) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, hex.EncodeToString(body))
		return nil, nil
	})
	hears := func(what, body string) {
		t.Helper()
		w.poll("the old member hears "+what, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Contains(heard, body)
		})
	}
	hears("an empty digest that asks for its own", "7363746b01020100")
	if _, err := w.Send(t.Context(), "old", "a", replicatest.Fixture(t, "digest-v1")); err != nil {
		t.Fatal(err)
	}
	if p := a.store.Progress(); len(p) != 1 || !p[0].Whole || p[0].Told != 1 || p[0].Lacking != 1 {
		t.Errorf("%+v", p)
	}
	revoked := "012f2cdac18a945846ee7085e8352425a15f2f3b514d52b407ca047cafdb83cb050000000077359400"
	hears("what was revoked", "7363746b01020001"+revoked)
	if _, err := w.Send(t.Context(), "old", "a", replicatest.Fixture(t, "news-v1")); err != nil {
		t.Fatal(err)
	}
	if a.has(secret(0)) == nil {
		t.Error("the token is not there")
	}
	if p := a.store.Progress(); !p[0].Done() {
		t.Errorf("%+v", p)
	}
	require.NoError(t, os.Remove(a.path(secret(0))))
	fingerprint := fingerprintOf(secret(0))
	hears("that it was revoked", "7363746b0101000101"+hex.EncodeToString(fingerprint[:])+"0000000077359400")
}
