package front

import (
	"crypto/tls"
	"encoding/asn1"
	"slices"
)

// Identity is who a peer has proved to be.
type Identity struct {
	// Names are those of its certificate: each common name of the subject and, of the alternative names, those for
	// hosts, mail and URIs, which are what Salt compares a minion's id with (salt/transport/tls_util.py,
	// verify_cert_identity).
	Names []string
}

// Has tells whether a name is among them.
func (i Identity) Has(name string) bool { return slices.Contains(i.Names, name) }

var commonName = asn1.ObjectIdentifier{2, 5, 4, 3}

// identityOf returns the names of a peer's certificate, which was verified. There are none without one.
func identityOf(s tls.ConnectionState) (i Identity) {
	if len(s.PeerCertificates) == 0 {
		return i
	}
	c := s.PeerCertificates[0]
	for _, n := range c.Subject.Names {
		if text, ok := n.Value.(string); ok && n.Type.Equal(commonName) {
			i.Names = append(i.Names, text)
		}
	}
	i.Names = append(append(i.Names, c.DNSNames...), c.EmailAddresses...)
	for _, u := range c.URIs {
		i.Names = append(i.Names, u.String())
	}
	return i
}
