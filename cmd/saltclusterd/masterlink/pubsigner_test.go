package masterlink

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster/configtest"
)

// A precomputed signature is named after the master since 3008 (salt/crypt.py:MasterKeys).
func TestReadPubSigner_Precomputed(t *testing.T) {
	for name, c := range map[string]struct {
		major      int
		file, text string
		options    string
		want       string
	}{
		"3006":    {3006, "master_pubkey_signature", " c2ln\r\nbmVk\n", "", "c2ln\nbmVk"},
		"3008":    {3008, "m1_pubkey_signature", "c2ln\n", "", "c2ln"},
		"named":   {3008, "signature", "c2ln\n", "master_pubkey_signature: signature\n", "c2ln"},
		"empty":   {3007, "master_pubkey_signature", " \n", "", ""},
		"missing": {3007, "another", "c2ln", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pki := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(pki, c.file), []byte(c.text), 0o600))
			master := configtest.Load(t, c.major, "id: m1\nmaster_sign_pubkey: True\n"+
				"master_use_pubkey_signature: True\npki_dir: "+pki+"\n"+c.options)
			signer, err := ReadPubSigner(readKey, master, "")
			if c.want == "" {
				if err == nil || !strings.Contains(err.Error(), "gen-signature") {
					t.Errorf("%v, %v", signer, err)
				}
				return
			}
			require.NoError(t, err)
			if got, err := signer.PubSig(""); err != nil || got != c.want {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
