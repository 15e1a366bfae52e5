package tlsconfig

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	"saltclusterd/sidecar/localmaster"
)

// Options are the option ssl of a master.
type Options struct {
	CertFile   string
	KeyFile    string // empty: the key is in CertFile
	CAFiles    []string
	CAPaths    []string // directories with files named by the hash of their subject (openssl rehash)
	CAData     []string // PEM
	ClientAuth tls.ClientAuthType
	MinVersion uint16
	MaxVersion uint16
	Ciphers    []uint16 // of TLS 1.2; nil: those of crypto/tls
	Revocation Revocation
}

// Revocation says for which certificates of a minion's chain a revocation list (CRL) is demanded.
type Revocation int

// No list; one of the certificate's issuer; one of each issuer of the chain.
const (
	RevocationOff Revocation = iota
	RevocationLeaf
	RevocationChain
)

// option is the name of the master's option.
const option = "ssl"

// ReadOptions reads the option ssl of a master. It returns nil when TLS is off, and when it is refused, which a fatal
// finding then explains.
func ReadOptions(master *localmaster.Config) (*Options, []localmaster.Finding) {
	raw, _ := master.Raw(option)
	p := &parser{o: &Options{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13}}
	switch v := raw.(type) {
	case nil:
		return nil, nil
	case bool:
		if !v {
			return nil, nil
		}
		p.refuse("certfile", "names no certificate", "Set 'ssl: {certfile: FILE, keyfile: FILE}'.")
	case map[string]any:
		p.parse(v, master.Version.Major)
	default:
		p.refuse("", "is neither a map nor True or False", "Set 'ssl: {certfile: FILE, keyfile: FILE}'.")
	}
	if by := master.SetBy(option); by != "" {
		for i := range p.found {
			p.found[i].Message += " It is set in " + by + "."
		}
	}
	if slices.ContainsFunc(p.found, func(f localmaster.Finding) bool { return f.Fatal }) {
		return nil, p.found
	}
	return p.o, p.found
}

type parser struct {
	o     *Options
	found []localmaster.Finding
}

// refuse adds the reason why TLS is not served.
func (p *parser) refuse(key, what, fix string) {
	name := option
	if key != "" {
		name += " " + key
	}
	p.found = append(p.found, localmaster.Finding{Option: option, Fatal: true, Fix: fix,
		Message: fmt.Sprintf("%s %s, so minions with TLS are refused.", name, what)})
}

func (p *parser) warn(key, what, fix string) {
	p.found = append(p.found, localmaster.Finding{Option: option, Fix: fix,
		Message: fmt.Sprintf("%s %s %s.", option, key, what)})
}

func (p *parser) parse(m map[string]any, major int) {
	known := map[string]func(any){
		"certfile":         func(v any) { p.o.CertFile = p.parseText("certfile", v) },
		"keyfile":          func(v any) { p.o.KeyFile = p.parseText("keyfile", v) },
		"ca_certs":         func(v any) { p.addCA("cafile", p.parseText("ca_certs", v)) },
		"cert_reqs":        p.parseCertReqs,
		"ssl_version":      p.parseVersion,
		"ciphers":          func(v any) { p.parseCiphers(p.parseText("ciphers", v)) },
		"verify_locations": p.parseLocations,
		"verify_flags":     p.parseFlags,
	}
	p.o.ClientAuth = defaultClientAuth(major)
	for _, key := range sortedKeys(m) {
		parse := known[key]
		switch {
		case parse == nil:
			p.refuse(key, "is not an option of Salt", "Remove it, or correct its name.")
		case m[key] == nil && key != "certfile": // as if it were not there; only certfile is needed
		default:
			parse(m[key])
		}
	}
	if p.o.CertFile == "" && len(p.found) == 0 {
		p.refuse("certfile", "is not set", "Set it to the file of this node's certificate.")
	}
	if p.o.ClientAuth != tls.NoClientCert && len(p.o.CAFiles)+len(p.o.CAPaths)+len(p.o.CAData) == 0 {
		p.refuse("ca_certs", "is not set, but minions are asked for certificates (cert_reqs, in 3008 also its default)",
			"Set it to the file with the CA of the minions' certificates, or set 'cert_reqs: CERT_NONE'.")
	}
}

// defaultClientAuth is what a master without cert_reqs demands: 3008 a certificate, those before none
// (salt/transport/base.py ssl_context).
func defaultClientAuth(major int) tls.ClientAuthType {
	if major >= 3008 {
		return tls.RequireAndVerifyClientCert
	}
	return tls.NoClientCert
}

func (p *parser) parseText(key string, v any) string {
	s, isText := v.(string)
	if !isText || s == "" {
		p.refuse(key, "is not a text", "Write the name between quotes.")
	}
	return s
}

func (p *parser) parseCertReqs(v any) {
	switch v {
	case "CERT_NONE":
		p.o.ClientAuth = tls.NoClientCert
	case "CERT_OPTIONAL":
		p.o.ClientAuth = tls.VerifyClientCertIfGiven
	case "CERT_REQUIRED":
		p.o.ClientAuth = tls.RequireAndVerifyClientCert
	default: // Salt does not start
		p.refuse("cert_reqs", "is not CERT_NONE, CERT_OPTIONAL or CERT_REQUIRED", "Set it to one of these.")
	}
}

// parseVersion reads ssl_version, a name of a constant of Python's module ssl.
func (p *parser) parseVersion(v any) {
	switch v {
	case "PROTOCOL_TLS", "PROTOCOL_SSLv23", "PROTOCOL_TLS_SERVER": // whatever both sides have
	case "PROTOCOL_TLSv1_2":
		p.o.MaxVersion = tls.VersionTLS12
	case "PROTOCOL_TLSv1", "PROTOCOL_TLSv1_1":
		p.refuse("ssl_version", "is older than TLS 1.2, which OpenSSL 3 refuses as well",
			"Remove it: TLS 1.2 and 1.3 are served.")
	case "PROTOCOL_TLS_CLIENT":
		p.refuse("ssl_version", "is PROTOCOL_TLS_CLIENT, with which a server cannot accept connections",
			"Remove it on the master; on minions it works.")
	default: // Salt does not start
		p.refuse("ssl_version", "is not a version that Salt has", "Remove it: TLS 1.2 and 1.3 are served.")
	}
}

// parseLocations reads verify_locations: names of files, or maps with cafile, capath and cadata.
func (p *parser) parseLocations(v any) {
	list, isList := v.([]any)
	if !isList {
		p.refuse("verify_locations", "is not a list", "Write it as [FILE] or [{cafile: FILE}].")
		return
	}
	for _, one := range list {
		m, isMap := one.(map[string]any)
		if !isMap {
			p.addCA("cafile", p.parseText("verify_locations", one))
			continue
		}
		for _, key := range sortedKeys(m) {
			p.addCA(strings.ToLower(key), p.parseText("verify_locations "+key, m[key]))
		}
	}
}

func (p *parser) addCA(kind, value string) {
	switch kind {
	case "cafile":
		p.o.CAFiles = append(p.o.CAFiles, value)
	case "capath":
		p.o.CAPaths = append(p.o.CAPaths, value)
	case "cadata":
		p.o.CAData = append(p.o.CAData, value)
	default: // Salt logs a warning
		p.refuse("verify_locations", fmt.Sprintf("has %q, which is none of cafile, capath and cadata", kind), "Remove it.")
	}
}

// parseFlags reads verify_flags, names of ssl.VerifyFlags.
func (p *parser) parseFlags(v any) {
	list, isList := v.([]any)
	if !isList {
		p.refuse("verify_flags", "is not a list", "Write it as [VERIFY_CRL_CHECK_LEAF].")
		return
	}
	for _, one := range list {
		name, _ := one.(string)
		switch strings.ToUpper(name) {
		case "VERIFY_DEFAULT", "VERIFY_X509_TRUSTED_FIRST", "VERIFY_X509_PARTIAL_CHAIN":
			// crypto/x509 always takes the shortest way to any certificate that it was given to trust.
		case "VERIFY_CRL_CHECK_LEAF":
			p.o.Revocation = max(p.o.Revocation, RevocationLeaf)
		case "VERIFY_CRL_CHECK_CHAIN":
			p.o.Revocation = RevocationChain
		default:
			p.refuse("verify_flags", fmt.Sprintf("has %q, which saltclusterd does not support", name),
				"Remove it; VERIFY_CRL_CHECK_LEAF and VERIFY_CRL_CHECK_CHAIN are possible.")
		}
	}
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
