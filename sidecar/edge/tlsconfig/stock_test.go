package tlsconfig_test

import (
	"crypto/tls"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge/tlsconfig"
	"saltclusterd/sidecar/edge/tlsconfig/tlstest"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/localmaster/mastertest"
)

// contexts prints for each configuration what the master's server demands of clients, or why there is no server.
const contexts = `
import json, logging, ssl, sys
logging.disable(logging.CRITICAL)
import salt.config, salt.transport.base
for path in sys.argv[1:]:
    try:
        opts = salt.config.master_config(path)["ssl"]
        if hasattr(salt.transport.base, "ssl_context"):
            c = salt.transport.base.ssl_context(opts, server_side=True)
        else:
            import salt.ext.tornado.netutil
            c = salt.ext.tornado.netutil.ssl_options_to_context(opts)
        print(json.dumps({"verify": int(c.verify_mode), "cas": len(c.get_ca_certs()), "tls13": ssl.PROTOCOL_TLSv1_2 != c.protocol,
            "ciphers": sorted(x["name"] for x in c.get_ciphers() if x["protocol"] != "TLSv1.3")}))
    except (Exception, SystemExit) as err:
        print(json.dumps({"error": repr(err)}))
`

type context struct {
	Verify  int
	CAs     int
	TLS13   bool
	Ciphers []string
	Error   string
}

// The option means to us what it means to a stock master. With 3007 no stock master has TLS: its ssl_context assigns to
// an attribute that Python does not let it assign to.
func TestAsStock(t *testing.T) {
	dir := t.TempDir()
	ca := tlstest.NewCA(t, "ca")
	cert, key := ca.Issue(tlstest.Wanted{Name: "master"})
	tlstest.Write(t, dir, "c.pem", cert, "k.pem", key, "ca.pem", ca.PEM)
	const pair = "certfile: @/c.pem, keyfile: @/k.pem"
	cases := []struct {
		ssl    string
		only   int  // of this release line; 0: of all
		strict bool // we refuse what stock takes
	}{
		{ssl: pair + ", cert_reqs: CERT_NONE"}, {ssl: pair + ", ca_certs: @/ca.pem"},
		{ssl: pair + ", ca_certs: @/ca.pem, cert_reqs: CERT_OPTIONAL"},
		{ssl: pair + ", ca_certs: @/ca.pem, cert_reqs: CERT_REQUIRED"},
		{ssl: pair + ", ca_certs: @/ca.pem, cert_reqs: required"},
		{ssl: pair + ", ca_certs: @/ca.pem, ssl_version: PROTOCOL_TLSv1_2"},
		{ssl: pair + ", ca_certs: @/ca.pem, ssl_version: PROTOCOL_SSLv23", only: 3006},
		{ssl: pair + ", ca_certs: @/ca.pem, ssl_version: TLSv1"},
		{ssl: pair + ", ca_certs: @/ca.pem, ciphers: 'ECDHE+AESGCM:!aNULL:!MD5'"},
		{ssl: pair + ", ca_certs: @/ca.pem, ciphers: 'ECDHE-RSA-AES128-GCM-SHA256'"},
		{ssl: pair + ", ca_certs: @/ca.pem, ciphers: 'ECDHE:-AES128:ECDHE+CHACHA20:!eNULL:!CAMELLIA:!ARIA:!AESCCM:!SHA256:!SHA384'"},
		{ssl: pair + ", ca_certs: @/ca.pem, verify_locations: [@/ca.pem, {cafile: @/ca.pem}]", only: 3008},
		{ssl: pair + ", ca_certs: @/ca.pem, verify_flags: [verify_crl_check_leaf]", only: 3008},
		{ssl: pair + ", ca_certs: @/ca.pem, verify_flags: [nonsense]", only: 3008},
		{ssl: pair + ", ca_certs: @/none.pem", only: 3008}, {ssl: "certfile: @/none.pem"},
		{ssl: pair + ", ca_certs: @/ca.pem, nonsense: 1", only: 3006},
		{ssl: pair + ", ca_certs: @/ca.pem, nonsense: 1", only: 3008, strict: true}, // 3008 ignores it
	}
	for _, version := range mastertest.Versions(t) {
		ver, err := localmaster.ParseVersion(version)
		require.NoError(t, err)
		var paths []string
		for _, c := range cases {
			path := filepath.Join(t.TempDir(), "master")
			if err := os.WriteFile(path, []byte("id: m\nssl: {"+strings.ReplaceAll(c.ssl, "@", dir)+"}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
		lines := strings.Split(strings.TrimSpace(mastertest.Python(t, version, contexts, paths...)), "\n")
		for i, c := range cases {
			var stock context
			require.NoError(t, json.Unmarshal([]byte(lines[i]), &stock))
			if ver.Major == 3007 {
				if !strings.Contains(stock.Error, "has no setter") && !strings.Contains(stock.Error, "SaltConfigurationError") {
					t.Errorf("3007, %s: %+v: TLS works with it now", c.ssl, stock)
				}
				continue
			}
			if c.only == 0 || c.only == ver.Major {
				compareContext(t, version+", "+c.ssl, paths[i], ver, stock, c.strict)
			}
		}
	}
}

func compareContext(t *testing.T, name, path string, ver localmaster.Version, stock context, strict bool) {
	t.Helper()
	cfg, err := localmaster.LoadConfig(path, ver)
	require.NoError(t, err)
	o, found := tlsconfig.ReadOptions(cfg)
	var l *tlsconfig.Loaded
	if o != nil {
		l, err = o.Load()
	}
	if l == nil {
		if stock.Error == "" && !strict {
			t.Errorf("%s: refused, stock serves it: %+v, %v", name, found, err)
		}
		return
	}
	if stock.Error != "" || strict {
		t.Errorf("%s: served, stock: %s", name, stock.Error)
		return
	}
	verify := map[tls.ClientAuthType]int{tls.NoClientCert: 0, tls.VerifyClientCertIfGiven: 1, tls.RequireAndVerifyClientCert: 2}
	if verify[o.ClientAuth] != stock.Verify || stock.TLS13 != (o.MaxVersion == tls.VersionTLS13) ||
		o.ClientAuth != tls.NoClientCert && len(l.CAs) < stock.CAs {
		t.Errorf("%s: %+v, stock: %+v", name, o, stock)
	}
	if o.Ciphers != nil && len(o.Ciphers) != len(stock.Ciphers) {
		t.Errorf("%s: %d ciphers, stock: %v", name, len(o.Ciphers), stock.Ciphers)
	}
}
