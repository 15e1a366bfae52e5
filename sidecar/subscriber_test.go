package sidecar

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/saltwire/tcpframe"
)

// sendID is what a minion with Salt's tcp transport sends on the publish port.
func sendID(t testing.TB, key saltcrypt.Key, load map[string]any) []byte {
	t.Helper()
	plain, err := saltwire.AppendAny(nil, load, saltwire.Wire)
	require.NoError(t, err)
	body, err := saltwire.AppendAny(nil, map[string]any{"enc": "aes", "version": 3,
		"load": saltcrypt.NewCrypticle(key).Seal(nil, plain, nil)}, saltwire.Wire)
	require.NoError(t, err)
	return body
}

func TestIdentifySubscriber(t *testing.T) {
	w := newWorld(t)
	tok, err := w.minion.SignX931([]byte("salt"))
	require.NoError(t, err)
	good := sendID(t, w.epoch, map[string]any{"id": "web1", "tok": tok})
	if id, ok := w.proxy.IdentifySubscriber(good); !ok || id != "web1" {
		t.Errorf("%q %v", id, ok)
	}
	for name, said := range map[string][]byte{
		"nothing":           nil,
		"another key":       sendID(t, newKey(t), map[string]any{"id": "web1", "tok": tok}),
		"a token made up":   sendID(t, w.epoch, map[string]any{"id": "web1", "tok": []byte("made up")}),
		"no token":          sendID(t, w.epoch, map[string]any{"id": "web1"}),
		"another minion":    sendID(t, w.epoch, map[string]any{"id": "web2", "tok": tok}),
		"an id that is no ": sendID(t, w.epoch, map[string]any{"id": "../web1", "tok": tok}),
		"in clear":          {0x82, 0xa3, 'e', 'n', 'c', 0xa5, 'c', 'l', 'e', 'a', 'r', 0xa4, 'l', 'o', 'a', 'd', 0xa1, 'x'},
	} {
		if id, ok := w.proxy.IdentifySubscriber(said); ok {
			t.Errorf("%s is %q", name, id)
		}
	}
	w.accepted = false
	if _, ok := w.proxy.IdentifySubscriber(good); ok {
		t.Error("a minion without an accepted key")
	}
}

// TestIdentifySubscriber_Stock opens what stock minions of each version sent.
func TestIdentifySubscriber_Stock(t *testing.T) {
	files, err := filepath.Glob("saltwire/tcpframe/testdata/golden/*.json")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		var r struct {
			Version, ID, Public, AES string
			Publications             []struct{ Minion []byte }
		}
		require.NoError(t, json.Unmarshal(b, &r))
		key, err := saltcrypt.ParseKey(r.AES)
		require.NoError(t, err)
		public, err := saltcrypt.ParsePublicKey(r.Public)
		require.NoError(t, err)
		d := tcpframe.NewDecoder(4 << 10)
		f, _, ok, err := d.Next(r.Publications[0].Minion)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		load, err := saltwire.ParseSendID(f.Body)
		require.NoError(t, err)
		plain, err := saltcrypt.NewCrypticle(key).Open(nil, load)
		require.NoError(t, err)
		id, tok, err := saltwire.ParseNamedToken(plain)
		if err != nil || id != r.ID || !guard.New(guard.Config{}).CheckToken(id, public, tok) {
			t.Errorf("%s: %q, %v", r.Version, id, err)
		}
	}
}

// FuzzIdentifySubscriber names no minion but the one whose key and token there are.
func FuzzIdentifySubscriber(f *testing.F) {
	w := newWorld(f)
	tok, err := w.minion.SignX931([]byte("salt"))
	require.NoError(f, err)
	f.Add([]byte("\x82\xa3enc\xa3aes\xa4load\xc4\x01x"), true)
	f.Add(sendID(f, w.epoch, map[string]any{"id": "web1", "tok": tok}), false)
	f.Add([]byte("\x82\xa2id\xa4web1\xa3tok\xa1x"), true)
	f.Fuzz(func(t *testing.T, said []byte, sealed bool) {
		if sealed { // as one who has the cluster's key, which every minion has
			said = saltwire.AppendBin([]byte("\x82\xa3enc\xa3aes\xa4load"), saltcrypt.NewCrypticle(w.epoch).Seal(nil, said, nil))
		}
		if id, ok := w.proxy.IdentifySubscriber(said); ok && id != "web1" {
			t.Fatalf("named %q", id)
		}
	})
}
