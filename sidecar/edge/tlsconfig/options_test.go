package tlsconfig

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster"
)

// loadMaster is a master's configuration with a text.
func loadMaster(t testing.TB, major int, text string) *localmaster.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "master")
	require.NoError(t, os.WriteFile(path, []byte("id: m\n"+text), 0o600))
	cfg, err := localmaster.LoadConfig(path, localmaster.Version{Major: major})
	require.NoError(t, err)
	return cfg
}

func TestReadOptions(t *testing.T) {
	const none, ca = "ssl: {certfile: c, cert_reqs: CERT_NONE, ", "ssl: {certfile: c, ca_certs: f, "
	for _, c := range []struct {
		text  string
		major int
		off   bool   // no TLS
		found string // part of the only finding; empty: none
		check func(*Options) bool
	}{
		{text: "", off: true}, {text: "ssl: null", off: true}, {text: "ssl: False", off: true},
		{text: "ssl: True", off: true, found: "certfile is not set"},
		{text: "ssl: {}", off: true, found: "certfile is not set"},
		{text: "ssl: {certfile: c}", check: func(o *Options) bool {
			return o.CertFile == "c" && o.KeyFile == "" && o.ClientAuth == tls.NoClientCert && o.MinVersion == tls.VersionTLS12 &&
				o.MaxVersion == tls.VersionTLS13 && o.Ciphers == nil
		}},
		{text: "ssl: {certfile: c, keyfile: null}", check: func(o *Options) bool { return o.KeyFile == "" }},
		{text: "ssl: {certfile: c}", major: 3008, off: true, found: "ca_certs is not set"},
		{text: ca + "}", major: 3008, check: func(o *Options) bool {
			return o.ClientAuth == tls.RequireAndVerifyClientCert && o.CAFiles[0] == "f"
		}},
		{text: "ssl: {certfile: [c]}", off: true, found: "certfile is not a text"},
		{text: none + "check_hostname: no}", off: true, found: "check_hostname is not an option of Salt"},
		{text: ca + "cert_reqs: CERT_OPTIONAL}", check: func(o *Options) bool { return o.ClientAuth == tls.VerifyClientCertIfGiven }},
		{text: ca + "cert_reqs: CERT_REQUIRED}", check: func(o *Options) bool {
			return o.ClientAuth == tls.RequireAndVerifyClientCert
		}},
		{text: ca + "cert_reqs: 2}", off: true, found: "is not CERT_NONE"},
		{text: ca + "cert_reqs: cert_required}", off: true, found: "is not CERT_NONE"},
		{text: none + "ssl_version: PROTOCOL_TLSv1_2}", check: func(o *Options) bool { return o.MaxVersion == tls.VersionTLS12 }},
		{text: none + "ssl_version: PROTOCOL_SSLv23}", check: func(o *Options) bool { return o.MaxVersion == tls.VersionTLS13 }},
		{text: none + "ssl_version: PROTOCOL_TLSv1}", off: true, found: "older than TLS 1.2"},
		{text: none + "ssl_version: PROTOCOL_TLS_CLIENT}", off: true, found: "a server cannot"},
		{text: none + "ssl_version: PROTOCOL_SSLv3}", off: true, found: "is not a version"},
		{text: none + "ciphers: 'ECDHE+AESGCM:!aNULL:@STRENGTH'}", check: func(o *Options) bool { return len(o.Ciphers) == 4 }},
		{text: none + "ciphers: ECDHE-RSA-AES128-GCM-SHA256}", check: func(o *Options) bool {
			return len(o.Ciphers) == 1 && o.Ciphers[0] == tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
		}},
		{text: none + "ciphers: 'HIGH:!SHA1:!CHACHA20:AES'}", check: func(o *Options) bool { return len(o.Ciphers) == 4 }},
		{text: none + "ciphers: 'HIGH:-AES:ECDSA+AES128'}", check: func(o *Options) bool { return len(o.Ciphers) == 4 }},
		{text: none + "ciphers: 'ECDHE-RSA-AES128-GCM-SHA256:GOST'}", found: `has ["GOST"]`, check: func(o *Options) bool {
			return len(o.Ciphers) == 1
		}},
		{text: none + "ciphers: 'DHE-RSA-AES256-SHA256:RC4'}", off: true, found: "leaves no cipher"},
		{text: none + "verify_locations: [f, {cafile: g}, {CApath: d}, {cadata: x}]}", check: func(o *Options) bool {
			return strings.Join(o.CAFiles, " ") == "f g" && o.CAPaths[0] == "d" && o.CAData[0] == "x"
		}},
		{text: none + "verify_locations: f}", off: true, found: "is not a list"},
		{text: none + "verify_locations: [{caurl: f}]}", off: true, found: `has "caurl"`},
		{text: none + "verify_flags: [verify_crl_check_leaf]}", check: func(o *Options) bool { return o.Revocation == RevocationLeaf }},
		{text: none + "verify_flags: [VERIFY_CRL_CHECK_CHAIN, VERIFY_CRL_CHECK_LEAF, VERIFY_X509_TRUSTED_FIRST]}",
			check: func(o *Options) bool { return o.Revocation == RevocationChain }},
		{text: none + "verify_flags: [VERIFY_X509_STRICT]}", off: true, found: `has "VERIFY_X509_STRICT"`},
		{text: none + "verify_flags: VERIFY_X509_STRICT}", off: true, found: "is not a list"},
	} {
		o, found := ReadOptions(loadMaster(t, max(c.major, 3007), c.text))
		switch {
		case (o == nil) != c.off:
			t.Errorf("%s: %+v, %+v", c.text, o, found)
		case o != nil && !c.check(o):
			t.Errorf("%s: %+v", c.text, o)
		}
		if c.found == "" && len(found) > 0 || c.found != "" && (len(found) != 1 || !strings.Contains(found[0].Message, c.found) ||
			found[0].Fix == "" || found[0].Fatal != c.off || !strings.Contains(found[0].Message, "It is set in ")) {
			t.Errorf("%s: findings %+v", c.text, found)
		}
	}
}

// Every suite that is offered is one of crypto/tls that is not insecure.
func TestSuites(t *testing.T) {
	secure := map[uint16]bool{}
	for _, s := range tls.CipherSuites() {
		secure[s.ID] = true
	}
	for name, id := range suites {
		if !secure[id] {
			t.Errorf("%s is not one that crypto/tls recommends", name)
		}
	}
}

func FuzzCiphers(f *testing.F) {
	for _, seed := range []string{"HIGH:!aNULL:@STRENGTH", "ECDHE+AESGCM,-SHA1", "!", "++:--", "TLS_AES_128_GCM_SHA256"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := &parser{o: &Options{}}
		p.parseCiphers(text)
		if (len(p.o.Ciphers) == 0) != (len(p.found) == 1 && p.found[0].Fatal) {
			t.Errorf("%q: %v, %+v", text, p.o.Ciphers, p.found)
		}
	})
}
