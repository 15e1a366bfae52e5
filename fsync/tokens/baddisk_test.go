package tokens

import (
	"bytes"
	"testing"
	"time"
)

// A token that was revoked elsewhere while the disk keeps its file is removed when the disk lets go of it.
func TestStore_RevokeOnBadDisk(t *testing.T) {
	w := newWorld(t, 3006)
	a := w.nodes["a"]
	data := a.mint(secret(0), time.Hour)
	w.poll("it is known", func() bool { return a.store.Status().Live == 1 })
	root, err := a.store.disk.openRoot()
	a.must(err)
	a.must(root.Close()) // it fails, as on a disk that is read-only
	a.store.mu.Lock()
	p := fingerprintOf(secret(0))
	what, err := a.store.acceptItem(root, nil, item{fingerprint: p, expire: time.Now().Add(time.Hour).Unix(), revoked: true}, false)
	a.store.mu.Unlock()
	if err == nil || what != failed || !bytes.Equal(a.has(secret(0)), data) {
		t.Errorf("%s, %v", what, err)
	}
	w.everywhere(secret(0), nil)
	if st := a.store.Status(); st.Revoked != 1 || st.Live != 0 {
		t.Errorf("%+v", st)
	}
}
