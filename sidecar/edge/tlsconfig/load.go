package tlsconfig

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
)

const (
	maxFile  = 4 << 20 // bytes of one file
	maxFiles = 1024    // files of a capath
)

// Loaded is what the files of Options held.
type Loaded struct {
	Config *tls.Config
	Leaf   *x509.Certificate   // that minions are shown
	CAs    []*x509.Certificate // of the minions' certificates

	lists map[string][]*x509.RevocationList // by the issuer's raw name
}

// Files returns the files that Load reads, those of a capath left out. The key is in the last one.
func (o *Options) Files() []string {
	files := append(append([]string(nil), o.CAFiles...), o.CertFile)
	if o.KeyFile != "" && o.KeyFile != o.CertFile {
		files = append(files, o.KeyFile)
	}
	return files
}

// Load reads the files. An error names the option and its file.
func (o *Options) Load() (*Loaded, error) {
	cert, err := o.loadPair()
	if err != nil {
		return nil, err
	}
	l := &Loaded{Leaf: cert.Leaf, lists: map[string][]*x509.RevocationList{}}
	if o.ClientAuth != tls.NoClientCert {
		if err := o.loadCAs(l); err != nil {
			return nil, err
		}
	}
	l.Config = &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientAuth: o.ClientAuth, MinVersion: o.MinVersion,
		MaxVersion: o.MaxVersion, CipherSuites: o.Ciphers,
		// Python's clients resume no session, and a certificate that is not trusted any more counts at once.
		SessionTicketsDisabled: true,
	}
	if o.ClientAuth != tls.NoClientCert { // without a pool crypto/tls would trust those of the host
		l.Config.ClientCAs = x509.NewCertPool()
		for _, ca := range l.CAs {
			l.Config.ClientCAs.AddCert(ca)
		}
		if o.Revocation != RevocationOff {
			l.Config.VerifyConnection = l.verifier(o.Revocation)
		}
	}
	return l, nil
}

// loadPair reads certificate and key.
func (o *Options) loadPair() (tls.Certificate, error) {
	certs, err := readSmall(o.CertFile)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("ssl certfile: %w", err)
	}
	key := certs
	if o.KeyFile != "" {
		if key, err = readSmall(o.KeyFile); err != nil {
			return tls.Certificate{}, fmt.Errorf("ssl keyfile: %w", err)
		}
	}
	if bytes.Contains(key, []byte("ENCRYPTED")) {
		return tls.Certificate{}, fmt.Errorf("ssl keyfile %s: has a passphrase; write the key without one",
			firstOf(o.KeyFile, o.CertFile))
	}
	pair, err := tls.X509KeyPair(certs, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("ssl certfile %s and keyfile %s: %w", o.CertFile, firstOf(o.KeyFile, o.CertFile),
			err)
	}
	if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
		return tls.Certificate{}, fmt.Errorf("ssl certfile %s: %w", o.CertFile, err)
	}
	return pair, nil
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// hashedName is what openssl rehash calls a file of a certificate, or with an r of a revocation list.
var hashedName = regexp.MustCompile(`^[0-9a-f]{8}\.r?[0-9]+$`)

// loadCAs reads what minions' certificates are verified with.
func (o *Options) loadCAs(l *Loaded) error {
	files := append([]string(nil), o.CAFiles...)
	for _, dir := range o.CAPaths {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("ssl capath: %w", err)
		}
		for _, e := range entries {
			if hashedName.MatchString(e.Name()) {
				files = append(files, filepath.Join(dir, e.Name()))
			}
		}
	}
	if len(files) > maxFiles {
		return fmt.Errorf("ssl verify_locations: %d files, at most %d", len(files), maxFiles)
	}
	for _, file := range files {
		text, err := readSmall(file)
		if err != nil {
			return fmt.Errorf("ssl ca_certs: %w", err)
		}
		if err := l.addPEM(text); err != nil {
			return fmt.Errorf("ssl ca_certs %s: %w", file, err)
		}
	}
	for _, text := range o.CAData {
		if err := l.addPEM([]byte(text)); err != nil {
			return fmt.Errorf("ssl cadata: %w", err)
		}
	}
	if len(l.CAs) == 0 {
		return errors.New("ssl ca_certs: holds no certificate, so no minion's certificate could be verified")
	}
	return nil
}

// addPEM takes certificates and revocation lists out of a text.
func (l *Loaded) addPEM(text []byte) error {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return nil
		}
		switch block.Type {
		case "CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE":
			ca, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return err
			}
			l.CAs = append(l.CAs, ca)
		case "X509 CRL":
			list, err := x509.ParseRevocationList(block.Bytes)
			if err != nil {
				return err
			}
			l.lists[string(list.RawIssuer)] = append(l.lists[string(list.RawIssuer)], list)
		}
	}
}

func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	return text, err
}
