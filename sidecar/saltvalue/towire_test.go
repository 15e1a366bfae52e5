package saltvalue_test

import (
	"bytes"
	"testing"

	"saltclusterd/sidecar/saltvalue"
)

// FuzzToWire: whatever came over the wire goes to the disk, back to the wire, and then to the same bytes on disk again.
func FuzzToWire(f *testing.F) {
	f.Add([]byte("\x83\xa1a\xda\x00\x03abc\xa1b\x92\xa2\xff\xfe\xcd\x00\x05\xa1c\xc7\x18\x4e20261121T04:05:06.000001"))
	f.Add([]byte("\x81\xa6return\xda\x00\x28aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"))
	f.Add([]byte("\xca\x3f\x80\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		// a float of 4 bytes becomes one of 8
		if out, _, err := saltvalue.AppendWire(nil, b); err == nil && len(out) > 3*len(b)+8 {
			t.Fatalf("%d bytes became %d", len(b), len(out))
		}
		if out, _, err := saltvalue.AppendAgain(nil, b); err == nil && len(out) > 3*len(b)+8 {
			t.Fatalf("%d bytes became %d", len(b), len(out))
		}
		disk, rest, err := saltvalue.AppendDisk(nil, b)
		if err != nil || len(rest) > 0 {
			return
		}
		wire, rest, err := saltvalue.AppendWire(nil, disk)
		if err != nil || len(rest) > 0 {
			t.Fatalf("%x: %v", disk, err)
		}
		again, rest, err := saltvalue.AppendDisk(nil, wire)
		if err != nil || len(rest) > 0 || !bytes.Equal(again, disk) {
			t.Fatalf("%x became %x, %v", disk, again, err)
		}
		if again, rest, err = saltvalue.AppendAgain(nil, disk); err != nil || len(rest) > 0 || !bytes.Equal(again, disk) {
			t.Fatalf("%x is written again as %x, %v", disk, again, err)
		}
	})
}
