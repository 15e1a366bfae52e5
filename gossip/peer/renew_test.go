package peer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func stored(t *testing.T, id node.ID) (*Identity, string) {
	t.Helper()
	dir := t.TempDir()
	i, err := LoadIdentity(dir, id)
	require.NoError(t, err)
	return i, dir
}

func renew(t *testing.T, i *Identity, dir string) (was, is node.Fingerprint) {
	t.Helper()
	was, is, err := i.Renew(dir, time.Now())
	require.NoError(t, err)
	return was, is
}

func TestRenew(t *testing.T) {
	i, dir := stored(t, "node-1")
	first := i.Fingerprint()
	var all []node.Fingerprint
	for n := range maxChain + 2 {
		was, is := renew(t, i, dir)
		if was == is || i.Fingerprint() != is || !i.Knows(was) {
			t.Fatalf("renewal %d: %s → %s", n, was.Short(), is.Short())
		}
		again, err := LoadIdentity(dir, "node-1")
		if err != nil || again.Fingerprint() != is ||
			len(again.currentCert().cert.Certificate) != len(i.currentCert().cert.Certificate) {
			t.Fatalf("after a restart: %v, %v", again, err)
		}
		all = append(all, is)
	}
	if i.Knows(first) || len(i.currentCert().cert.Certificate) != maxChain || !i.Knows(all[len(all)-maxChain]) {
		t.Error("the predecessors are not the last ones")
	}
	if st, err := os.Stat(filepath.Join(dir, KeyFile)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", st, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.next")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if made := i.Made(); time.Since(made) > time.Hour || made.IsZero() {
		t.Errorf("made at %s", made)
	}
}

// A crash at any moment leaves the old or the new certificate.
func TestRenewalCutOff(t *testing.T) {
	for name, cut := range map[string]struct {
		files []string // of the renewed ones that are there
		wants string
	}{
		"predecessors":       {[]string{chainFile}, "old"},
		"certificate":        {[]string{chainFile, nextCert}, "old"},
		"key":                {[]string{chainFile, nextCert, nextKey}, "old"},
		"key in force":       {[]string{chainFile, nextCert, KeyFile}, "new"},
		"all, next not gone": {[]string{chainFile, CertFile, KeyFile}, "new"},
	} {
		i, dir := stored(t, "node-1")
		before := t.TempDir()
		require.NoError(t, os.CopyFS(before, os.DirFS(dir)))
		was, is := renew(t, i, dir)
		for _, f := range cut.files {
			from := map[string]string{nextCert: CertFile, nextKey: KeyFile}[f]
			if from == "" {
				from = f
			}
			text, err := os.ReadFile(filepath.Join(dir, from))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(before, f), text, 0o600))
		}
		require.NoError(t, os.Chmod(filepath.Join(before, KeyFile), 0o600)) // which CopyFS does not keep
		want := map[string]node.Fingerprint{"old": was, "new": is}[cut.wants]
		for range 2 {
			got, err := LoadIdentity(before, "node-1")
			if err != nil || got.Fingerprint() != want {
				t.Fatalf("%s: %v, %v", name, got, err)
			}
		}
		if _, err := os.Stat(filepath.Join(before, nextKey)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the next key is left: %v", name, err)
		}
	}
}

// TestStoreRenewed_Order looks at the directory at each moment at which it is on the disk: the key that is in force has
// its certificate beside it, so that a power loss leaves no mixture on any file system.
func TestStoreRenewed_Order(t *testing.T) {
	i, dir := stored(t, "node-1")
	renewed, _ := stored(t, "node-1")
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	var certs []bool // whether node.crt.next is there at each sync
	err := storeRenewed(dir, renewed.currentCert(), func(string) error {
		certs = append(certs, has(nextCert))
		if has(nextKey) {
			t.Error("the next key is not in force yet")
		}
		return nil
	})
	require.NoError(t, err)
	if len(certs) != 2 || !certs[0] || certs[1] {
		t.Errorf("node.crt.next at the syncs: %v, want one before its rename and one after", certs)
	}
	got, err := LoadIdentity(dir, "node-1")
	if err != nil || got.Fingerprint() != renewed.Fingerprint() || got.Fingerprint() == i.Fingerprint() {
		t.Errorf("renewed: %v, %v", got, err)
	}
}

func TestReload(t *testing.T) {
	i, dir := stored(t, "node-1")
	other, err := LoadIdentity(dir, "node-1")
	require.NoError(t, err)
	if news, err := i.Reload(dir); err != nil || news {
		t.Errorf("nothing happened: %v, %v", news, err)
	}
	_, is := renew(t, other, dir)
	if news, err := i.Reload(dir); err != nil || !news || i.Fingerprint() != is {
		t.Errorf("another process renewed it: %v, %v", news, err)
	}
}

// Before, while and after the roster hears of a new certificate nobody refuses anybody, in either direction; afterwards
// the old key opens nothing, not even together with what it signs.
func TestRenewedCertificateAndRoster(t *testing.T) {
	m := newMesh(t)
	i, dir := stored(t, "a")
	a := m.member("a", func(c *Config) { c.Identity = i })
	b := m.member("b", nil)
	echo(t, a, ProtoRaft)
	echo(t, b, ProtoRaft)
	both := func(when string) {
		t.Helper()
		for _, c := range []struct {
			from *Port
			to   node.ID
		}{{a, "b"}, {b, "a"}} {
			check.NoError(t, works(dial(t, c.from, c.to, ProtoRaft)), when, "to", c.to)
		}
	}
	both("before")
	stolen := i.currentCert().cert // the thief has the key of today
	was, is := renew(t, i, dir)
	both("the roster has not heard of it")
	old := dial(t, b, "a", ProtoRaft)
	m.change(func(all []node.Entry) []node.Entry {
		for n := range all {
			if all[n].ID == "a" {
				all[n].Fingerprint = is
			}
		}
		return all
	})
	both("the roster knows it")
	if n := b.Revoke(was); n == 0 {
		t.Error("no connection was known by the old certificate")
	}
	if err := works(old); err == nil {
		t.Error("a connection of the old certificate still works")
	}
	both("the old one is revoked")
	thief := identity(t, "a")
	thief.cur.Store(&credential{cert: stolen, fp: was})
	if _, err := rawDial(t, b, &tls.Config{Certificates: []tls.Certificate{stolen},
		NextProtos: []string{ProtoRaft}}); err == nil || isTimeout(err) {
		t.Errorf("the old certificate: %v, want a TLS alert", err)
	}
	renew(t, thief, t.TempDir())
	forged := thief.currentCert().cert
	if _, err := rawDial(t, b, &tls.Config{Certificates: []tls.Certificate{forged},
		NextProtos: []string{ProtoRaft}}); err == nil || isTimeout(err) {
		t.Errorf("what the old key signed: %v, want a TLS alert", err)
	}
}

// A node that was away for several renewals knows the others by their predecessors.
func TestRenewedSeveralTimes(t *testing.T) {
	m := newMesh(t)
	i, dir := stored(t, "a")
	a := m.member("a", func(c *Config) { c.Identity = i })
	b := m.member("b", nil) // its roster, the mesh's, stays as it is
	echo(t, b, ProtoRaft)
	for range maxChain - 1 {
		renew(t, i, dir)
	}
	check.NoError(t, works(dial(t, a, "b", ProtoRaft)), "after", maxChain-1, "renewals")
	renew(t, i, dir)
	if _, err := a.Dial(context.Background(), "b", ProtoRaft); err == nil {
		t.Error("after one more it is still known")
	}
}

// A node may not vouch for another, nor somebody unknown for anybody.
func TestForgedChains(t *testing.T) {
	m := newMesh(t)
	member, dir := stored(t, "evil") // a true member, which wants to be "victim"
	m.member("evil", func(c *Config) { c.Identity = member })
	victim := m.member("victim", nil)
	p := m.member("p", nil)
	echo(t, p, ProtoRaft)
	renew(t, member, dir)
	own := member.currentCert().cert.Certificate
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	evil := member.currentCert().cert
	forged, err := newCertificate("victim", time.Now(), key, evil.Leaf, evil.PrivateKey.(*ecdsa.PrivateKey))
	require.NoError(t, err)
	for name, chain := range map[string][][]byte{
		"a member vouches for another":      {forged, own[0], own[1]},
		"the victim's, without its key":     {forged, victim.cfg.Identity.currentCert().cert.Certificate[0]},
		"in the wrong order":                {forged, own[1], own[0]},
		"the same twice":                    {forged, forged},
		"too many":                          {forged, own[0], own[0], own[0], own[0], own[0], own[0], own[0], own[0]},
		"a certificate and nobody's signed": {forged},
	} {
		cfg := &tls.Config{Certificates: []tls.Certificate{{Certificate: chain, PrivateKey: key}},
			NextProtos: []string{ProtoRaft}}
		if _, err := rawDial(t, p, cfg); err == nil || isTimeout(err) {
			t.Errorf("%s: %v, want a TLS alert", name, err)
		}
	}
}

// FuzzChain reads certificates that a peer shows, and the file of predecessors.
func FuzzChain(f *testing.F) {
	i, err := NewIdentity("node-1")
	require.NoError(f, err)
	for range 2 {
		f.Add(certPEM(i.currentCert().cert.Certificate...))
		if _, _, err := i.Renew(f.TempDir(), time.Now()); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var ders [][]byte
		for block, rest := pem.Decode(text); block != nil && len(ders) < 2*maxChain; block, rest = pem.Decode(rest) {
			ders = append(ders, block.Bytes)
		}
		certs, err := parseChain(ders)
		if err != nil {
			return
		}
		fps, err := checkChain(certs)
		if err != nil || len(fps) != len(ders) || len(fps) > maxChain {
			t.Fatalf("%d fingerprints of %d certificates, %v", len(fps), len(ders), err)
		}
	})
}
