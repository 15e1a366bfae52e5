package peer

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// Bounds on what a member shows of the cluster's key, in bytes.
const (
	maxPubPEM    = 8 << 10
	maxSignature = 2 << 10
	minKeyBits   = 2048
	maxKeyBits   = 8192
)

// pssOptions: PSS with SHA-256. Salt signs with PKCS #1 v1.5 only, so a signature made here means nothing to a minion.
var pssOptions = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256}

// ClusterKey is the cluster's RSA key (master.pem of every stock master) as far as joining needs it.
type ClusterKey struct {
	key *rsa.PrivateKey
	pub []byte
}

// ParseClusterKey reads the private key in PEM (PKCS #1 or PKCS #8); pub is the text of the public key file, whose
// SHA-256 is what operators pin with cluster_pub_fingerprint.
func ParseClusterKey(private, pub []byte) (*ClusterKey, error) {
	block, _ := pem.Decode(private)
	if block == nil {
		return nil, errors.New("cluster key: not PEM")
	}
	var key *rsa.PrivateKey
	if k, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		key = k
	} else if k, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		key, _ = k.(*rsa.PrivateKey)
	}
	if key == nil {
		return nil, errors.New("cluster key: not an RSA private key")
	}
	public, err := parseClusterPub(pub)
	if err != nil {
		return nil, err
	}
	if !key.PublicKey.Equal(public) {
		return nil, errors.New("cluster key: the public key does not belong to the private key")
	}
	return &ClusterKey{key: key, pub: pub}, nil
}

// SignChannel signs a message of the join protocol. It has the form JoinHandler asks for.
func (k *ClusterKey) SignChannel(message []byte) (sig, pubPEM []byte, err error) {
	sum := sha256.Sum256(message)
	sig, err = rsa.SignPSS(rand.Reader, k.key, crypto.SHA256, sum[:], pssOptions)
	if err != nil {
		return nil, nil, fmt.Errorf("sign the join channel: %w", err)
	}
	return sig, k.pub, nil
}

func parseClusterPub(text []byte) (*rsa.PublicKey, error) {
	if len(text) > maxPubPEM {
		return nil, errors.New("cluster key: public key is too large")
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("cluster key: public key is not PEM")
	}
	var key *rsa.PublicKey
	if k, err := x509.ParsePKIXPublicKey(block.Bytes); err == nil {
		key, _ = k.(*rsa.PublicKey)
	} else if k, err := x509.ParsePKCS1PublicKey(block.Bytes); err == nil {
		key = k
	}
	if key == nil {
		return nil, errors.New("cluster key: not an RSA public key")
	}
	if bits := key.N.BitLen(); bits < minKeyBits || bits > maxKeyBits {
		return nil, fmt.Errorf("cluster key: %d bits, between %d and %d are allowed", bits, minKeyBits, maxKeyBits)
	}
	return key, nil
}

func verifyCluster(pubPEM, message, sig []byte) error {
	key, err := parseClusterPub(pubPEM)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(message)
	if err := rsa.VerifyPSS(key, crypto.SHA256, sum[:], sig, pssOptions); err != nil {
		return errors.New("cluster key: the signature over the channel is wrong")
	}
	return nil
}

// ParsePubFingerprint checks the option cluster_pub_fingerprint: the SHA-256 of the public key file as hex, as Salt
// 3008 has it (salt.channel.server.cluster_pub_matches_fingerprint); colons are allowed.
func ParsePubFingerprint(s string) (string, error) {
	text := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(s), ":", ""))
	if raw, err := hex.DecodeString(text); err != nil || len(raw) != sha256.Size {
		return "", errors.New("cluster_pub_fingerprint is not a SHA-256 in hex (64 digits); see: sha256sum cluster.pub")
	}
	return text, nil
}

// pubMatches compares a pinned fingerprint with a public key; whether the file ends with a newline does not matter, for
// Salt itself writes and cleans keys both ways.
func pubMatches(pinned string, pubPEM []byte) bool {
	text := strings.TrimSpace(string(pubPEM))
	for _, t := range []string{string(pubPEM), text, text + "\n"} {
		if sum := sha256.Sum256([]byte(t)); hex.EncodeToString(sum[:]) == pinned {
			return true
		}
	}
	return false
}

// PubFingerprint is the fingerprint to show to an operator, and the one in join tokens: of the text with one newline,
// as the file has it.
func PubFingerprint(pubPEM []byte) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(string(pubPEM)) + "\n"))
	return hex.EncodeToString(sum[:])
}
