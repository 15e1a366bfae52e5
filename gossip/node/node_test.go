package node

import (
	"errors"
	"strings"
	"testing"
)

func TestParseID(t *testing.T) {
	good := []string{"a", "0", "a-b", "m1.example.com", "a_b", strings.Repeat("x", MaxID)}
	bad := []string{
		"", "A", "a-", "-a", ".a", "a.", "_a", "a b", "a/b", "ä", "a\n", "a\x00b", strings.Repeat("x", MaxID+1), "a:b",
	}
	for _, s := range good {
		if id, err := ParseID(s); err != nil || string(id) != s || !id.Valid() {
			t.Errorf("ParseID(%q) = %q, %v", s, id, err)
		}
	}
	for _, s := range bad {
		if id, err := ParseID(s); !errors.Is(err, ErrInvalidID) || id != "" || ID(s).Valid() {
			t.Errorf("ParseID(%q) = %q, %v; want ErrInvalidID", s, id, err)
		}
	}
}

func TestFingerprint(t *testing.T) {
	fp := FingerprintOf([]byte("certificate"))
	var colons []string
	for i := 0; i < len(fp); i += 2 {
		colons = append(colons, strings.ToUpper(string(fp[i:i+2])))
	}
	for _, s := range []string{fp.String(), strings.ToUpper(fp.String()), strings.Join(colons, ":")} {
		if got, err := ParseFingerprint(s); err != nil || got != fp {
			t.Errorf("ParseFingerprint(%q) = %q, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "abc", fp.String()[:62], fp.String() + "00", strings.Repeat("z", 64)} {
		if got, err := ParseFingerprint(s); err == nil {
			t.Errorf("ParseFingerprint(%q) = %q, want an error", s, got)
		}
	}
	if fp.Short() != fp.String()[:12] || Fingerprint("").Short() != "" {
		t.Error("Short is not the first twelve digits")
	}
}

func TestParseAddr(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.7:4520": "192.0.2.7:4520", "[2001:db8::1]:4520": "[2001:db8::1]:4520", "[::ffff:192.0.2.7]:1": "192.0.2.7:1",
	} {
		if got, err := ParseAddr(in); err != nil || got.String() != want {
			t.Errorf("ParseAddr(%q) = %v, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "host:4520", "192.0.2.7", "192.0.2.7:0", "0.0.0.0:4520", "[::]:4520", "224.0.0.1:1", "255.255.255.255:1",
		"[fe80::1%eth0]:4520",
	} {
		if got, err := ParseAddr(in); err == nil {
			t.Errorf("ParseAddr(%q) = %v, want an error", in, got)
		}
	}
}

func TestParseEntry(t *testing.T) {
	fp := FingerprintOf(nil)
	e, err := ParseEntry("a", "192.0.2.7:4520", fp.String())
	if err != nil || e.ID != "a" || e.Addr.Port() != 4520 || e.Fingerprint != fp {
		t.Errorf("ParseEntry = %+v, %v", e, err)
	}
	for _, in := range [][3]string{{"A", "192.0.2.7:4520", fp.String()}, {"a", "x", fp.String()},
		{"a", "192.0.2.7:4520", "x"}} {
		if e, err := ParseEntry(in[0], in[1], in[2]); err == nil || e != (Entry{}) {
			t.Errorf("ParseEntry(%q) = %+v, want an error", in, e)
		}
	}
}

func TestMetaRoundTrip(t *testing.T) {
	for _, m := range []Meta{
		{},
		{Build: "1.0.0", Salt: "3008.3", Proto: 3, Ready: true, Subscribers: 10_000},
		{MasterUp: true, Draining: true, Witness: true, Subscribers: ^uint32(0), Work: 64},
		{Returns: true},
		{Mines: true},
		{Roots: true},
		{Level: 7},
		{Tolerance: 750},
	} {
		b := m.Append(nil)
		got, err := ParseMeta(b)
		if err != nil || got != m {
			t.Errorf("ParseMeta(Append(%+v)) = %+v, %v", m, got, err)
		}
	}
	long := Meta{Build: strings.Repeat("b", 5000), Salt: strings.Repeat("s", 5000)}
	if b := long.Append(nil); len(b) > MaxMeta {
		t.Errorf("encoded form has %d bytes, more than %d", len(b), MaxMeta)
	}
}

func TestParseMetaRefuses(t *testing.T) {
	for name, b := range map[string]string{
		"empty": "", "other magic": "x\x01", "newer version": "s\x02", "cut record": "s\x01\x01\x05ab",
		"cut head":    "s\x01\x01",
		"short fixed": "s\x01\x03\x01a", "control": "s\x01\x01\x01\n",
		"long text": "s\x01\x01\x50" + strings.Repeat("a", 0x50),
		"too long":  "s\x01" + strings.Repeat("\x63\x00", 300),
	} {
		if m, err := ParseMeta([]byte(b)); !errors.Is(err, ErrMeta) || m != (Meta{}) {
			t.Errorf("%s: ParseMeta = %+v, %v; want ErrMeta", name, m, err)
		}
	}
	if m, err := ParseMeta([]byte("s\x01\x63\x02xy\x02\x013")); err != nil || m.Salt != "3" {
		t.Errorf("unknown record: %+v, %v; want it skipped", m, err)
	}
}

func FuzzParseMeta(f *testing.F) {
	f.Add(Meta{}.Append(nil))
	f.Add(Meta{Build: "1.2.3", Salt: "3006.28", Proto: 1, Ready: true, Subscribers: 7}.Append(nil))
	f.Add([]byte("s\x01\x63\x02xy"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseMeta(b)
		if err != nil {
			return
		}
		again, err := ParseMeta(m.Append(nil))
		if err != nil || again != m {
			t.Fatalf("%+v does not survive encoding: %+v, %v", m, again, err)
		}
	})
}

func FuzzParseID(f *testing.F) {
	f.Add("master-1.example.com")
	f.Add("..")
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := ParseID(s); err == nil && (string(id) != s || len(s) > MaxID) {
			t.Fatalf("ParseID(%q) = %q", s, id)
		}
	})
}
