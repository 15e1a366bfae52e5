package saltcrypt

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// vectors is a file of testdata/golden, written by integration/golden/record.py. The keys in it are test keys.
type vectors struct {
	Keys map[string]struct {
		Private, Public string
	}
	Crypticle []struct {
		Key, Nonce    string
		Msgpack, Text []byte
	}
	OAEP []struct {
		Key, Algo string
		Msg, Text []byte
	}
	PKCS1 []struct {
		Key, Algo string
		Data, Sig []byte
	}
	X931 []struct {
		Key      string
		Msg, Sig []byte
		Verifies bool
	}
	Clean []struct {
		In, Out []byte
	}
	Finger []struct {
		Pub    []byte
		Finger string
	}
	PubSig []struct {
		Key, Algo string
		Text      []byte
		PubSig    string `json:"pub_sig"`
	} `json:"pub_sig"`
}

// eachGolden runs f for the vectors of each recorded Salt version.
func eachGolden(t *testing.T, f func(t *testing.T, v vectors)) {
	t.Helper()
	files, err := filepath.Glob("testdata/golden/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden vectors: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			var v vectors
			require.NoError(t, json.Unmarshal(raw, &v))
			f(t, v)
		})
	}
}

func (v vectors) private(t testing.TB, name string) *MasterKey {
	t.Helper()
	m, err := ParseMasterKey([]byte(v.Keys[name].Private))
	require.NoError(t, err)
	return m
}

func TestGoldenCrypticle(t *testing.T) {
	eachGolden(t, func(t *testing.T, v vectors) {
		for _, row := range v.Crypticle {
			key, err := ParseKey(row.Key)
			require.NoError(t, err)
			check.Equal(t, key.Text(), row.Key, "key text changes on a round trip")
			plain, err := NewCrypticle(key).Open(nil, row.Text)
			if err != nil || string(plain) != row.Nonce+string(row.Msgpack) {
				t.Errorf("Open(%x) = %x, %v", row.Text, plain, err)
			}
		}
	})
}

func TestGoldenX931(t *testing.T) {
	eachGolden(t, func(t *testing.T, v vectors) {
		for _, row := range v.X931 {
			m := v.private(t, row.Key)
			if sig, err := m.SignX931(row.Msg); err != nil || string(sig) != string(row.Sig) {
				t.Errorf("SignX931(%q) = %x, %v; want %x", row.Msg, sig, err, row.Sig)
			}
			msg, err := m.Public().VerifyX931(row.Sig)
			if row.Verifies != (err == nil) || row.Verifies && string(msg) != string(row.Msg) {
				t.Errorf("VerifyX931 of %q = %q, %v", row.Msg, msg, err)
			}
		}
	})
}

func TestGoldenRSA(t *testing.T) {
	eachGolden(t, func(t *testing.T, v vectors) {
		for _, row := range v.OAEP {
			if msg, err := v.private(t, row.Key).DecryptOAEP(row.Algo, row.Text); err != nil || string(msg) != string(row.Msg) {
				t.Errorf("DecryptOAEP(%s) = %q, %v; want %q", row.Algo, msg, err, row.Msg)
			}
		}
		for _, row := range v.PKCS1 {
			m := v.private(t, row.Key)
			if sig, err := m.Sign(row.Algo, row.Data); err != nil || string(sig) != string(row.Sig) {
				t.Errorf("Sign(%s) = %x, %v; want %x", row.Algo, sig, err, row.Sig)
			}
			check.NoError(t, m.Public().Verify(row.Algo, row.Data, row.Sig), "Verify(", row.Algo, ")")
		}
		for _, row := range v.PubSig {
			m := v.private(t, row.Key)
			if sig, err := m.SignPublic(row.Algo, string(row.Text)); err != nil || sig != row.PubSig {
				t.Errorf("SignPublic(%s) = %q, %v; want %q", row.Algo, sig, err, row.PubSig)
			}
			if err := m.Public().VerifyPubSig(row.Algo, string(row.Text), row.PubSig); err != nil {
				t.Errorf("VerifyPubSig(%s): %v", row.Algo, err)
			}
		}
	})
}

func TestGoldenTexts(t *testing.T) {
	eachGolden(t, func(t *testing.T, v vectors) {
		for _, row := range v.Clean {
			if got := CleanKey(string(row.In)); got != string(row.Out) {
				t.Errorf("CleanKey(%q) = %q, want %q", row.In, got, row.Out)
			}
		}
		for _, row := range v.Finger {
			check.Equal(t, Fingerprint(string(row.Pub)), row.Finger, "Fingerprint(", row.Pub, ")")
		}
		for name, pair := range v.Keys {
			m := v.private(t, name)
			pub, err := ParsePublicKey(pair.Public)
			require.NoError(t, err)
			if !m.Public().Equal(pub) || m.PublicText() != CleanKey(pair.Public) || string(m.PEM()) != pair.Private {
				t.Errorf("%s: texts differ from Salt's", name)
			}
		}
	})
}
