package peer

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func TestLoadIdentity(t *testing.T) {
	dir := t.TempDir()
	first, err := LoadIdentity(dir, "node-1")
	require.NoError(t, err)
	again, err := LoadIdentity(dir, "node-1")
	if err != nil || again.Fingerprint() != first.Fingerprint() || again.ID() != "node-1" {
		t.Fatalf("second load: %v, %v", again, err)
	}
	if st, _ := os.Stat(filepath.Join(dir, KeyFile)); st.Mode().Perm() != 0o600 {
		t.Errorf("the key has mode %04o", st.Mode().Perm())
	}
	if _, err := LoadIdentity(dir, "node-2"); err == nil || !strings.Contains(err.Error(), "option id") {
		t.Errorf("load under another id: %v", err)
	}
	require.NoError(t, os.Chmod(filepath.Join(dir, KeyFile), 0o640))
	if _, err := LoadIdentity(dir, "node-1"); err == nil || !strings.Contains(err.Error(), "chmod") {
		t.Errorf("load of a readable key: %v", err)
	}
}

func TestLoadIdentityDamaged(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"cut key":  func(d string) error { return os.Truncate(filepath.Join(d, KeyFile), 40) },
		"cut cert": func(d string) error { return os.Truncate(filepath.Join(d, CertFile), 40) },
		"no key":   func(d string) error { return os.Remove(filepath.Join(d, KeyFile)) },
		"huge": func(d string) error {
			return os.WriteFile(filepath.Join(d, CertFile), make([]byte, maxIdentityFile+1), 0o600)
		},
	} {
		dir := t.TempDir()
		if _, err := LoadIdentity(dir, "node-1"); err != nil {
			t.Fatal(err)
		}
		require.NoError(t, damage(dir))
		if i, err := LoadIdentity(dir, "node-1"); err == nil {
			t.Errorf("%s: an identity came out: %v", name, i.Fingerprint())
		}
	}
	// A crash between the two writes leaves a key alone: nobody knows it, so a new one is made.
	dir := t.TempDir()
	if _, err := LoadIdentity(dir, "node-1"); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, CertFile)))
	if _, err := LoadIdentity(dir, "node-1"); err != nil {
		t.Errorf("after a crash at first start: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".saltcluster-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestValidateSecret(t *testing.T) {
	fresh, err := NewSecret()
	require.NoError(t, err)
	for _, s := range []string{fresh, testSecret, " " + testSecret + "\n"} {
		check.NoError(t, ValidateSecret(s), "ValidateSecret(", s, ")")
	}
	for _, s := range []string{"", "   ", "short", strings.Repeat("a", 40), strings.Repeat("ab", 20), testSecret + "\x00x",
		strings.Repeat("x1y2z3w4", 200)} {
		err := ValidateSecret(s)
		if err == nil || !strings.Contains(err.Error(), "cluster_secret") {
			t.Errorf("ValidateSecret(%q): %v", s, err)
		} else if len(s) > 5 && strings.TrimSpace(s) != "" && strings.Contains(err.Error(), s) {
			t.Errorf("the error quotes the secret: %v", err)
		}
	}
	check.EqualSlices(t, SecretBytes(" "+testSecret+"\n"), []byte(testSecret), "SecretBytes keeps white space")
}

func TestPubFingerprint(t *testing.T) {
	pub := clusterKeys()[0].pub
	bare := bytes.TrimSpace(pub)
	for _, pinned := range [][]byte{pub, bare} {
		for _, shown := range [][]byte{pub, bare} {
			if !pubMatches(sha256hex(pinned), shown) {
				t.Error("a newline at the end matters")
			}
		}
	}
	if pubMatches(sha256hex(clusterKeys()[1].pub), pub) {
		t.Error("another key matches")
	}
	check.Equal(t, PubFingerprint(bare), sha256hex(pub), "the fingerprint shown is not that of the file")
}

func TestResolveAdvertise(t *testing.T) {
	ifaces := func(list ...string) func() ([]net.Addr, error) {
		return func() (out []net.Addr, err error) {
			for _, s := range list {
				ip, n, _ := net.ParseCIDR(s)
				out = append(out, &net.IPNet{IP: ip, Mask: n.Mask})
			}
			return out, nil
		}
	}
	one := ifaces("127.0.0.1/8", "::1/128", "fe80::1/64", "192.0.2.7/24")
	two := ifaces("192.0.2.7/24", "198.51.100.7/24")
	six := ifaces("192.0.2.7/24", "2001:db8::7/64")
	for _, c := range []struct {
		listen, advertise string
		ifaces            func() ([]net.Addr, error)
		want, says        string
	}{
		{"192.0.2.1:4520", "", one, "192.0.2.1:4520", ""},
		{"192.0.2.1:4520", "203.0.113.9:14520", one, "203.0.113.9:14520", ""},
		{"0.0.0.0:4520", "203.0.113.9", one, "203.0.113.9:4520", ""},
		{"[::]:4520", "2001:db8::9", one, "[2001:db8::9]:4520", ""},
		{"0.0.0.0:4520", "", one, "192.0.2.7:4520", ""},
		{":4520", "", one, "192.0.2.7:4520", ""},
		{"[::]:4520", "", one, "192.0.2.7:4520", ""},
		{"[::]:4520", "", six, "[2001:db8::7]:4520", ""},
		{"0.0.0.0:4520", "", two, "", "cluster_advertise"},
		{"0.0.0.0:4520", "0.0.0.0:4520", one, "", "cluster_advertise"},
		{"0.0.0.0:4520", "host.example:4520", one, "", "cluster_advertise"},
		{"host.example:4520", "", one, "", "cluster_advertise"},
		{"nonsense", "", one, "", "listen"},
	} {
		got, err := resolveAdvertise(c.listen, c.advertise, c.ifaces)
		if c.says == "" && (err != nil || got.String() != c.want) {
			t.Errorf("%q, %q: %v, %v; want %s", c.listen, c.advertise, got, err, c.want)
		}
		if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%q, %q: %v, %v; want an error naming %s", c.listen, c.advertise, got, err, c.says)
		}
	}
}

func entries(t *testing.T, ids ...node.ID) (out []node.Entry) {
	t.Helper()
	for i, id := range ids {
		addr, err := node.ParseAddr("192.0.2." + string(rune('1'+i)) + ":4520")
		require.NoError(t, err)
		out = append(out, node.Entry{ID: id, Addr: addr, Fingerprint: node.FingerprintOf([]byte(id))})
	}
	return out
}

func TestBook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "roster.json")
	b, err := OpenBook(path)
	if err != nil || b.Rev() != 0 || len(b.Entries()) != 0 {
		t.Fatalf("a missing file: %+v, %v", b, err)
	}
	all := entries(t, "a", "b", "c")
	if removed, err := b.Set(5, all); err != nil || len(removed) != 0 {
		t.Fatalf("first Set: %v, %v", removed, err)
	}
	if removed, err := b.Set(4, nil); err != nil || len(removed) != 0 || len(b.Entries()) != 3 {
		t.Errorf("an older revision was taken: %v, %v", removed, err)
	}
	removed, err := b.Set(6, all[:2])
	if err != nil || !reflect.DeepEqual(removed, []node.Fingerprint{all[2].Fingerprint}) {
		t.Errorf("removed = %v, %v", removed, err)
	}
	again, err := OpenBook(path)
	if err != nil || again.Rev() != 6 || !reflect.DeepEqual(again.byID, b.byID) || !reflect.DeepEqual(again.byFP, b.byFP) {
		t.Errorf("reopened: %+v, %v", again, err)
	}
	if st, _ := os.Stat(path); st.Mode().Perm() != 0o600 {
		t.Errorf("mode %04o", st.Mode().Perm())
	}
	if _, err := b.Set(7, append(entries(t, "a"), entries(t, "a")...)); err == nil {
		t.Error("a node twice was taken")
	}
	if err := b.Reset(); err != nil || b.Rev() != 0 || len(b.Entries()) != 0 {
		t.Errorf("Reset: %v", err)
	}
	if again, err := OpenBook(path); err != nil || len(again.Entries()) != 0 {
		t.Errorf("reopened after Reset: %+v, %v", again, err)
	}
}

func TestBookDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "roster.json")
	for _, text := range []string{
		"", "nonsense", `{"version":2}`, `{"version":1,"members":[{"id":"A"}]}`,
		`{"version":1,"members":[{"id":"a","addr":"x"}]}`,
		`{"version":1,"members":[{"id":"a","addr":"192.0.2.1:1","fingerprint":"x"}]}`,
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		if b, err := OpenBook(path); err == nil {
			t.Errorf("%q was read as %+v", text, b.Entries())
		}
	}
}

func TestProofBindsEverything(t *testing.T) {
	base := Proof{Exporter: []byte("e"), Joiner: "j", Member: "m", JoinerFP: "jf", MemberFP: "mf"}
	secret := []byte(testSecret)
	good := base.macFor(secret, roleJoiner)
	if !base.verifyMAC(secret, roleJoiner, good) {
		t.Fatal("a proof does not verify")
	}
	for name, p := range map[string]Proof{
		"exporter": {Exporter: []byte("f"), Joiner: "j", Member: "m", JoinerFP: "jf", MemberFP: "mf"},
		"joiner":   {Exporter: []byte("e"), Joiner: "k", Member: "m", JoinerFP: "jf", MemberFP: "mf"},
		"shifted":  {Exporter: []byte("e"), Joiner: "jm", Member: "", JoinerFP: "jf", MemberFP: "mf"},
		"swapped":  {Exporter: []byte("e"), Joiner: "m", Member: "j", JoinerFP: "mf", MemberFP: "jf"},
		"joinerfp": {Exporter: []byte("e"), Joiner: "j", Member: "m", JoinerFP: "xx", MemberFP: "mf"},
		"memberfp": {Exporter: []byte("e"), Joiner: "j", Member: "m", JoinerFP: "jf", MemberFP: "xx"},
	} {
		if p.verifyMAC(secret, roleJoiner, good) {
			t.Errorf("%s is not bound", name)
		}
	}
	if base.verifyMAC(secret, roleMember, good) || base.verifyMAC([]byte("x"), roleJoiner, good) ||
		base.verifyMAC(secret, roleJoiner, good[:31]) {
		t.Error("role, secret or length is not bound")
	}
}

func TestRefusalTextIsHarmless(t *testing.T) {
	r, err := parseRefused(refused{Code: 4, Text: "a\x1b[31m\nb\u009bü"}.appendTo(nil))
	if err != nil || r.Text != "a?[31m?b?ü" {
		t.Errorf("text = %q, %v", r.Text, err)
	}
	if _, err := parseRefused(nil); !errors.Is(err, errFrame) {
		t.Errorf("empty refusal: %v", err)
	}
}
