package node

import "testing"

// FuzzParseEntry: what was agreed on or told about a member is one that others can reach, and reads the same again.
func FuzzParseEntry(f *testing.F) {
	const print = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	f.Add("m1", "192.0.2.7:4520", print)
	f.Add("m1", "[2001:db8::1%eth0]:4520", "SHA256:"+print)
	f.Add("..", "0.0.0.0:0", print[1:])
	f.Fuzz(func(t *testing.T, id, addr, fingerprint string) {
		e, err := ParseEntry(id, addr, fingerprint)
		if err != nil {
			return
		}
		again, err := ParseEntry(string(e.ID), e.Addr.String(), string(e.Fingerprint))
		if err != nil || again != e {
			t.Fatalf("%+v became %+v, %v", e, again, err)
		}
		if e.Addr.Port() == 0 || e.Addr.Addr().IsUnspecified() || len(e.Fingerprint) != 64 {
			t.Fatalf("%+v was accepted", e)
		}
	})
}
