package peer

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"fmt"

	"saltclusterd/gossip/node"
)

const (
	proofLabel   = "scd-join-v1"
	tokenLabel   = "scd-join-v2 token"
	exporterSize = 32
	proofSize    = sha256.Size
)

// role says whose proof it is, so that one side's proof is worthless as the other's.
type role string

const (
	roleJoiner role = "joiner"
	roleMember role = "member"
)

// Proof is everything both sides of a join prove the secret over.
type Proof struct {
	Exporter           []byte // keying material of this very TLS connection
	Joiner, Member     node.ID
	JoinerFP, MemberFP node.Fingerprint
}

// tokenMessage is what the holder of a token signs.
func (p Proof) tokenMessage(token string) []byte {
	return appendFields(nil, []byte(tokenLabel), []byte(token), p.Exporter,
		[]byte(p.Joiner), []byte(p.Member), []byte(p.JoinerFP), []byte(p.MemberFP))
}

// macFor returns the proof of one side: HMAC-SHA256 over the fields, each behind its length (32 bits, big endian).
func (p Proof) macFor(secret []byte, r role) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write(appendFields(nil, []byte(proofLabel), []byte(r), p.Exporter,
		[]byte(p.Joiner), []byte(p.Member), []byte(p.JoinerFP), []byte(p.MemberFP)))
	return mac.Sum(nil)
}

// verifyMAC compares in constant time.
func (p Proof) verifyMAC(secret []byte, r role, proof []byte) bool {
	return hmac.Equal(p.macFor(secret, r), proof)
}

// clusterMessage is what the cluster's RSA key signs to show that the member holds it: bound to the channel, and of a
// shape that nothing in Salt signs.
func (p Proof) clusterMessage() []byte {
	msg := []byte("scd-join-v1 cluster key\x00")
	msg = append(msg, p.Exporter...)
	msg = append(msg, p.JoinerFP...)
	return append(msg, p.MemberFP...)
}

// exportKeying derives the channel's keying material.
func exportKeying(t *tls.Conn) ([]byte, error) {
	cs := t.ConnectionState()
	b, err := cs.ExportKeyingMaterial(exporterLabel, nil, exporterSize)
	if err != nil {
		return nil, fmt.Errorf("export keying material: %w", err)
	}
	return b, nil
}
