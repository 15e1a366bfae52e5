package handover

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"saltclusterd/integration/check"
)

func TestRecord(t *testing.T) {
	e := &Encoder{}
	e.Uint(1 << 40)
	e.Int(-1)
	e.Bool(true)
	e.Duration(time.Second)
	e.Duration(-time.Second)
	e.String("web1")
	e.Chain([][]byte{[]byte("a"), []byte("bc")})
	addr := netip.MustParseAddrPort("[2001:db8::1]:4505")
	e.Addr(addr)
	d := NewDecoder(e.Record())
	if d.Uint() != 1<<40 || d.Int(1) != 0 || !d.Bool() || d.Duration() != time.Second || d.Duration() != 0 ||
		d.String() != "web1" || string(d.Bytes()) != "abc" || d.Addr() != addr {
		t.Error("another record came out")
	}
	check.NoError(t, d.End())
	if d.Uint(); !errors.Is(d.End(), ErrState) {
		t.Errorf("read beyond the end: %v", d.Err())
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add([]byte{1, 2, 'a', 'b', 4, 10, 0, 0, 1, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		d := NewDecoder(b)
		for d.Err() == nil && d.Left() > 0 {
			d.Bool()
			d.Bytes()
			d.Addr()
			d.Duration()
			if n := d.Count(); n > len(b) {
				t.Fatalf("room for %d of %d bytes", n, len(b))
			}
		}
		_ = d.End()
	})
}
