package peer

import (
	"crypto/tls"
	"fmt"
)

// serverTLS is the configuration of the accepting side. Tickets are off: a resumed connection would not present its
// certificate again.
func (p *Port) serverTLS() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{p.cfg.Identity.currentCert().cert},
		ClientAuth:             tls.RequireAnyClientCert,
		NextProtos:             []string{ProtoRaft, ProtoGossip, ProtoHTTP, ProtoJoin, ProtoStanding, ProtoTunnel},
		SessionTicketsDisabled: true,
		VerifyConnection:       p.verifyInbound,
	}
}

// verifyInbound refuses strangers within the handshake, so that they hear a proper alert. What counts is the admission
// afterwards.
func (p *Port) verifyInbound(cs tls.ConnectionState) error {
	peer, err := peerCert(cs)
	if err != nil {
		return err
	}
	switch cs.NegotiatedProtocol {
	case ProtoJoin, ProtoStanding:
		_, err := idFromCert(peer.cert)
		return err
	case ProtoRaft, ProtoGossip, ProtoHTTP, ProtoTunnel:
		_, _, err := peer.findMember(p.cfg.Roster)
		return err
	default:
		return fmt.Errorf("no protocol of ours was negotiated")
	}
}

// clientTLS is the configuration for dialling proto, with verify deciding about the certificate. There is no CA, hence
// InsecureSkipVerify: names and chains mean nothing here, fingerprints do.
func clientTLS(i *Identity, proto string, verify func(shown) error) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		Certificates:       []tls.Certificate{i.currentCert().cert},
		NextProtos:         []string{proto},
		InsecureSkipVerify: true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			if cs.NegotiatedProtocol != proto {
				return fmt.Errorf("the peer does not speak %s", proto)
			}
			peer, err := peerCert(cs)
			if err != nil {
				return err
			}
			return verify(peer)
		},
	}
}
