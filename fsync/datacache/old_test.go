package datacache

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"saltclusterd/fsync/replica/replicatest"
)

// under is the same with the print of a key in place of the one in it.
func under(pub string, body []byte) []byte {
	blob := func(s string) []byte { return append([]byte{byte(len(s))}, s...) }
	return bytes.Replace(body, blob("k1"), blob(fingerprint(pub)), 1)
}

// A member of an older version tells and is told in the bytes it knows.
func TestOldMember(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t)
	t.Cleanup(w.close) // before the directory goes
	var mu sync.Mutex
	var heard []string
	refuse := true
	w.Play("old", func(body []byte) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		if heard = append(heard, hex.EncodeToString(body)); refuse {
			refuse = false
			return nil, errors.New("starting")
		}
		return nil, nil
	})
	a := w.add("a", 3006, dir)
	hears := func(what, body string) {
		t.Helper()
		w.poll("the old member hears "+what, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Contains(heard, body)
		})
	}
	hears("an empty digest that asks for its own", "73636d64010203000000")
	push := func(body []byte) {
		t.Helper()
		if _, err := w.Send(t.Context(), "old", "a", body); err != nil {
			t.Fatal(err)
		}
	}
	push(under("pub", replicatest.Fixture(t, "data-v1"))) // before its key
	w.setKey("web1", "pub")
	hears("that its data are wanted", "73636d6401020000000104"+hex.EncodeToString([]byte("web1"))+"0000000000000000")
	push(replicatest.Fixture(t, "digest-v1"))
	if p := a.store.Progress(); len(p) != 1 || !p[0].Whole || p[0].Lacking != 1 {
		t.Errorf("%+v", p)
	}
	hears("our digest", "73636d64010201000000")
	push(under("pub", replicatest.Fixture(t, "data-v1")))
	w.poll("the data are there", func() bool { g, _ := a.has("web1"); return bytes.Equal(g, texts("os", "D")) })
	if p := a.store.Progress(); !p[0].Done() {
		t.Errorf("%+v", p)
	}
	a.stock("web1", texts("os", "E"), texts("a", "b"))
	a.store.Touched("web1")
	w.poll("the old member hears records of new data", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.ContainsFunc(heard, func(body string) bool {
			return strings.HasPrefix(body, "73636d640101"+"01"+"04"+hex.EncodeToString([]byte("web1"))) &&
				strings.Contains(body, hex.EncodeToString(texts("os", "E")))
		})
	})
}
