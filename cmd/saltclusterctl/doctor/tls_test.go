package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge/tlsconfig/tlstest"
	"saltclusterd/sidecar/localmaster"
)

func TestTLS(t *testing.T) {
	ca := tlstest.NewCA(t, "ca")
	now := time.Now()
	day := 24 * time.Hour
	const all = "{certfile: @/c.pem, keyfile: @/k.pem, ca_certs: @/ca.pem}"
	root := Account{Name: "root"}
	salt := Account{Name: "salt", UID: 4242, GIDs: []uint32{4242}}
	for name, tt := range map[string]struct {
		ssl    string
		who    Account
		cert   tlstest.Wanted
		mode   os.FileMode // of the key; 0: 0600
		levels string
		words  string
		must   bool
	}{
		"required":            {ssl: all, who: root, levels: "ok", words: "valid until", must: true},
		"required and off":    {ssl: "null", who: root, levels: "fail", words: "has no option ssl", must: true},
		"off":                 {ssl: "null", who: root},
		"well":                {ssl: all, who: root, levels: "ok", words: "minions must have one of their own"},
		"no certificate":      {ssl: "true", who: root, levels: "fail fail", words: "certfile is not set"},
		"no CA":               {ssl: "{certfile: @/c.pem, keyfile: @/k.pem}", who: root, levels: "fail", words: "ca_certs is not set"},
		"CA missing":          {ssl: "{certfile: @/c.pem, keyfile: @/k.pem, ca_certs: @/x}", who: root, levels: "fail", words: "@/x: no such file"},
		"key of no use":       {ssl: "{certfile: @/c.pem, keyfile: @/ca.pem, ca_certs: @/ca.pem}", who: root, levels: "fail", words: "private key"},
		"expired":             {ssl: all, who: root, cert: tlstest.Wanted{From: now.Add(-2 * day), To: now.Add(-day)}, levels: "fail", words: "has expired"},
		"not yet valid":       {ssl: all, who: root, cert: tlstest.Wanted{From: now.Add(day), To: now.Add(2 * day)}, levels: "fail", words: "is not valid before"},
		"expires soon":        {ssl: all, who: root, cert: tlstest.Wanted{From: now.Add(-90 * day), To: now.Add(9 * day)}, levels: "warn", words: "expires in 8 days"},
		"everybody's key":     {ssl: all, who: root, mode: 0o644, levels: "fail", words: "every user of this host can read it"},
		"another user's key":  {ssl: all, who: salt, levels: "fail", words: "cannot be read by the user salt"},
		"an unknown cipher":   {ssl: "{certfile: @/c.pem, cert_reqs: CERT_NONE, ciphers: 'HIGH:GOST', keyfile: @/k.pem}", who: root, levels: "warn", words: "GOST"},
		"an unknown option":   {ssl: "{certfile: @/c.pem, key: @/k.pem, ca_certs: @/ca.pem}", who: root, levels: "fail", words: "ssl key is not an option"},
		"a certificate alone": {ssl: "{certfile: @/c.pem, ca_certs: @/ca.pem}", who: root, levels: "fail", words: "private key"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, dir := range []string{filepath.Dir(dir), dir} { // a stranger may enter
				require.NoError(t, os.Chmod(dir, 0o755))
			}
			tt.cert.Name, tt.cert.IPs = "master", []string{"10.0.0.11"}
			cert, key := ca.Issue(tt.cert)
			tlstest.Write(t, dir, "c.pem", cert, "k.pem", key, "ca.pem", ca.PEM)
			for name, mode := range map[string]os.FileMode{"k.pem": max(tt.mode, 0o600), "c.pem": 0o644, "ca.pem": 0o644} {
				require.NoError(t, os.Chmod(filepath.Join(dir, name), mode))
			}
			path := filepath.Join(dir, "master")
			if err := os.WriteFile(path, []byte("id: m\nssl: "+strings.ReplaceAll(tt.ssl, "@", dir)+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			master, err := localmaster.LoadConfig(path, localmaster.Version{Major: 3008})
			require.NoError(t, err)
			found := TLS(master, tt.who, tt.must, now)
			text := ""
			for _, f := range found {
				text += strings.ReplaceAll(f.Where+": "+f.What+"\n", dir, "@")
			}
			if got := levels(found); got != tt.levels || !strings.Contains(text, tt.words) {
				t.Errorf("%q, want %q with %q: %s", got, tt.levels, tt.words, text)
			}
		})
	}
}
