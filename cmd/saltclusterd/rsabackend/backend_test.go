package rsabackend

import (
	"bytes"
	"crypto/fips140"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltcrypt/libcrypto"

	"github.com/prometheus/client_golang/prometheus"
)

// TestSelect follows rsa_backend, and logs the choice once with its reason.
func TestSelect(t *testing.T) {
	key, err := saltcrypt.GenerateMasterKey(2048)
	require.NoError(t, err)
	available := !fips140.Enabled() && libcrypto.Load() == nil
	for _, c := range []struct {
		option         string
		library, fails bool
	}{
		{config.RSAGo, false, false},
		{config.RSAAuto, available, false},
		{config.RSALibcrypto, available, !available},
	} {
		var logged bytes.Buffer
		log := slog.New(slog.NewTextHandler(&logged, nil))
		if err := Check(c.option); (err != nil) != c.fails {
			t.Errorf("%s: start: %v", c.option, err)
		}
		got, err := Select(c.option, key, log, prometheus.NewRegistry())
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", c.option, err)
		}
		if c.fails {
			continue
		}
		if _, library := got.(*libcrypto.Key); library != c.library {
			t.Errorf("%s: %T", c.option, got)
		}
		text := logged.String()
		if strings.Count(text, "RSA backend selected") != 1 || !c.library && !strings.Contains(text, "reason=") {
			t.Errorf("%s: logged %q", c.option, text)
		}
		sig, err := got.Sign(saltcrypt.PKCS1v15SHA1, []byte("data"))
		if err != nil || key.Public().Verify(saltcrypt.PKCS1v15SHA1, []byte("data"), sig) != nil {
			t.Errorf("%s: %x, %v", c.option, sig, err)
		}
	}
}

// TestSelect_FIPS leaves RSA to Go while its FIPS 140-3 module is on, and refuses the library.
func TestSelect_FIPS(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestSelect$")
	cmd.Env = append(os.Environ(), "GODEBUG=fips140=on")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
