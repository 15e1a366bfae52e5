package localmaster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// fakeAuth answers sign-ins as a master would, or as told.
type fakeAuth struct {
	t            *testing.T
	signs, shows *saltcrypt.MasterKey
	aes          saltcrypt.Key
	ret          any  // not nil: the answer
	fips         bool // refuses SHA-1
	nonce        string
	asked        atomic.Int32
}

func (f *fakeAuth) Do(_ context.Context, body []byte) ([]byte, error) {
	f.asked.Add(1)
	env, err := saltwire.ParseEnvelope(body)
	if err != nil {
		return nil, err
	}
	// Off the network no id may begin with a dot; the master's own parser does not mind.
	req, err := saltwire.ParseAuth(bytes.Replace(env.Load, []byte(HiddenID), []byte("x"+HiddenID[1:]), 1))
	if err != nil {
		return nil, err
	}
	if f.fips && req.EncAlgo == "OAEP-SHA1" {
		return saltwire.AppendClearRet(nil, "bad enc algo"), nil
	}
	nonce := req.Nonce
	if f.nonce != "" {
		nonce = f.nonce
	}
	load := saltwire.AppendAuthRet(nil, f.ret, nonce)
	if f.ret == nil {
		load = f.accept(req, nonce)
	}
	sig, err := f.signs.Sign(req.SigAlgo, load)
	return saltwire.AppendSigned(nil, load, sig), err
}

func (f *fakeAuth) accept(req saltwire.AuthRequest, nonce string) []byte {
	pub, err := saltcrypt.ParsePublicKey(req.Pub)
	require.NoError(f.t, err)
	aes, err := pub.EncryptOAEP(req.EncAlgo, []byte(f.aes.Text()))
	require.NoError(f.t, err)
	sum := sha256.Sum256([]byte(f.aes.Text()))
	proof, err := f.signs.SignX931([]byte(hex.EncodeToString(sum[:])))
	require.NoError(f.t, err)
	return saltwire.AppendAuthAccept(nil, saltwire.AuthAccept{
		PubKey: f.shows.PublicText(), PublishPort: 4505, AES: aes, Session: aes, Sig: proof, Nonce: nonce,
	})
}

func TestHiddenOutcomes(t *testing.T) {
	one, other := twoKeys(t)
	for name, c := range map[string]struct {
		change func(*fakeAuth)
		want   error
	}{
		"accepted":    {func(*fakeAuth) {}, nil},
		"fips":        {func(f *fakeAuth) { f.fips = true }, nil},
		"pending":     {func(f *fakeAuth) { f.ret = true }, ErrHiddenPending},
		"rejected":    {func(f *fakeAuth) { f.ret = false }, ErrHiddenRejected},
		"full":        {func(f *fakeAuth) { f.ret = "full" }, ErrHiddenFull},
		"stale":       {func(f *fakeAuth) { f.shows = other }, ErrStaleIdentity},
		"other nonce": {func(f *fakeAuth) { f.nonce = "0123" }, ErrHiddenReply},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testMaster(t, 3007, "n1")
			minions := filepath.Join(cfg.PkiDir, "minions")
			rejected := filepath.Join(cfg.PkiDir, "minions_rejected", HiddenID)
			require.NoError(t, errors.Join(os.MkdirAll(minions, 0o755), os.MkdirAll(filepath.Dir(rejected), 0o755),
				os.WriteFile(rejected, []byte("x"), 0o644)))
			f := &fakeAuth{t: t, signs: one, shows: one, aes: newKey(t)}
			c.change(f)
			keys := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(keys, hiddenKeyFile), other.PEM(), 0o600))
			s, err := NewHidden(cfg, HiddenOptions{KeyDir: keys, Requester: f}).SignIn(t.Context())
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Fatal(err)
			}
			if err == nil && (!s.AES.Equal(f.aes) || s.MasterPub != one.PublicText() || s.PublishPort != 4505) {
				t.Error("secrets are not those that were sent")
			}
			if text, err := os.ReadFile(filepath.Join(minions, HiddenID)); err != nil || string(text) != other.PublicText() {
				t.Errorf("accepted key: %v", err)
			}
			if _, err := os.Stat(rejected); err == nil {
				t.Error("the rejected key is still there")
			}
		})
	}
}

// An operator who deletes the key has it replaced.
func TestHidden_AnotherKey(t *testing.T) {
	one, other := twoKeys(t)
	cfg, keys := testMaster(t, 3007, "n1"), t.TempDir()
	accepted := filepath.Join(cfg.PkiDir, "minions", HiddenID)
	require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(accepted), 0o755),
		os.WriteFile(filepath.Join(keys, hiddenKeyFile), other.PEM(), 0o600)))
	h := NewHidden(cfg, HiddenOptions{KeyDir: keys, Requester: &fakeAuth{t: t, signs: one, shows: one, aes: newKey(t)}})
	for _, replaced := range []bool{false, true} {
		if replaced {
			require.NoError(t, os.Remove(filepath.Join(keys, hiddenKeyFile)))
		}
		if _, err := h.SignIn(t.Context()); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(accepted); err != nil || (string(text) == other.PublicText()) == replaced {
			t.Errorf("replaced %v: %v", replaced, err)
		}
	}
}

func TestHidden_MasterNotStarted(t *testing.T) {
	cfg := testMaster(t, 3007, "n1")
	f := &fakeAuth{t: t}
	keys := filepath.Join(t.TempDir(), "new")
	if _, err := NewHidden(cfg, HiddenOptions{KeyDir: keys, Requester: f}).SignIn(t.Context()); err == nil ||
		f.asked.Load() != 0 {
		t.Errorf("signed in without directories: %v", err)
	}
	info, err := os.Stat(filepath.Join(keys, hiddenKeyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("private key: %v", err)
	}
}

// TestHiddenWhereKeysAreElsewhere: the directories of a master's keys are links.
func TestHiddenWhereKeysAreElsewhere(t *testing.T) {
	one, _ := twoKeys(t)
	cfg, elsewhere := testMaster(t, 3007, "n1"), t.TempDir()
	for _, state := range []string{"minions", "minions_rejected"} {
		if err := errors.Join(os.MkdirAll(cfg.PkiDir, 0o755), os.Mkdir(filepath.Join(elsewhere, state), 0o755),
			os.Symlink(filepath.Join(elsewhere, state), filepath.Join(cfg.PkiDir, state))); err != nil {
			t.Fatal(err)
		}
	}
	f := &fakeAuth{t: t, signs: one, shows: one, aes: newKey(t)}
	if _, err := NewHidden(cfg, HiddenOptions{KeyDir: t.TempDir(), Requester: f}).SignIn(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(elsewhere, "minions", HiddenID)); err != nil {
		t.Error(err)
	}
}
