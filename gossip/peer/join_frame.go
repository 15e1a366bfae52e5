package peer

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"saltclusterd/gossip/node"
)

// A join frame is its type (1 byte), the length of its body (4 bytes, big endian) and the body. Fields of a body are
// behind their length (4 bytes). A version adds frame types or whole versions; it never changes the fields of an older
// one.
const (
	joinVersion  = 1 // the joiner proves a secret
	tokenVersion = 2 // it proves a token; the member sends no frameProof
)

const (
	frameHello   = 1 // joiner: version, id, secret id (empty) or token id, proof or signature
	frameProof   = 2 // member: proof
	frameCluster = 3 // member: cluster id, public key of the cluster (PEM), signature over the channel
	frameRequest = 4 // joiner: cluster id wanted, advertised address, payload
	frameReply   = 5 // member: payload
	frameRefused = 6 // member: code, text
)

// Bounds on bodies in bytes, by what the reader knows of the writer.
const (
	maxUnproven = 1 << 10  // nothing
	maxCluster  = 16 << 10 // it knows the secret
	// MaxJoinPayload bounds what a joiner sends along.
	MaxJoinPayload = 64 << 10
	// MaxJoinReply bounds what JoinHandler.Admit returns.
	MaxJoinReply   = 1 << 20
	maxRefusalText = 512
	maxSecretID    = 64
	maxClusterID   = 255
	fieldOverhead  = 512 // for the small fields beside a payload
)

// Codes of a refusal. Before the proof only the code is used, never the text.
const (
	refusedNotReady = 1
	refusedSlowDown = 2
	refusedVersion  = 3
	refusedByAdmit  = 4
	refusedInternal = 5
	refusedProof    = 6 // the end of the connection does not say so: Go's TLS reads one that broke as one that was ended
)

var errFrame = errors.New("malformed join frame")

type hello struct {
	ID       node.ID
	SecretID string // of a token, when Signed
	Proof    []byte // HMAC, or signature when Signed
	Signed   bool   // version 2
}

type clusterProof struct {
	ClusterID string
	PubPEM    []byte
	Signature []byte
}

type request struct {
	ClusterID string
	Advertise string
	Payload   []byte
}

type refused struct {
	Code byte
	Text string
}

func writeFrame(w io.Writer, kind byte, body []byte) error {
	frame := make([]byte, 0, 5+len(body))
	frame = append(frame, kind)
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(body)))
	_, err := w.Write(append(frame, body...))
	return err
}

// readFrame reads one frame with a body of at most limit bytes. An end of the stream before the first byte is io.EOF.
func readFrame(r io.Reader, limit int) (kind byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if uint64(n) > uint64(limit) {
		return 0, nil, fmt.Errorf("%w: a body of %d bytes, at most %d are allowed here", errFrame, n, limit)
	}
	body = make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, fmt.Errorf("read join frame: %w", io.ErrUnexpectedEOF)
	}
	return head[0], body, nil
}

func (h hello) appendTo(dst []byte) []byte {
	version := byte(joinVersion)
	if h.Signed {
		version = tokenVersion
	}
	return appendFields(append(dst, version), []byte(h.ID), []byte(h.SecretID), h.Proof)
}

// errVersion is returned by parseHello for a version this node does not speak.
var errVersion = errors.New("unknown join version")

func parseHello(b []byte) (hello, error) {
	if len(b) == 0 {
		return hello{}, errFrame
	}
	size := proofSize
	switch b[0] {
	case joinVersion:
	case tokenVersion:
		size = ed25519.SignatureSize
	default:
		return hello{}, errVersion
	}
	f, err := parseFields(b[1:], node.MaxID, maxSecretID, size)
	if err != nil {
		return hello{}, err
	}
	id, err := node.ParseID(string(f[0]))
	if err != nil || len(f[2]) != size || !node.IsPrintable(f[1]) {
		return hello{}, errFrame
	}
	return hello{ID: id, SecretID: string(f[1]), Proof: f[2], Signed: b[0] == tokenVersion}, nil
}

func (c clusterProof) appendTo(dst []byte) []byte {
	return appendFields(dst, []byte(c.ClusterID), c.PubPEM, c.Signature)
}

func parseCluster(b []byte) (clusterProof, error) {
	f, err := parseFields(b, maxClusterID, maxPubPEM, maxSignature)
	if err != nil || !node.IsPrintable(f[0]) {
		return clusterProof{}, errFrame
	}
	return clusterProof{ClusterID: string(f[0]), PubPEM: f[1], Signature: f[2]}, nil
}

func (r request) appendTo(dst []byte) []byte {
	return appendFields(dst, []byte(r.ClusterID), []byte(r.Advertise), r.Payload)
}

func parseRequest(b []byte) (request, error) {
	f, err := parseFields(b, maxClusterID, 64, MaxJoinPayload)
	if err != nil || !node.IsPrintable(f[0]) || !node.IsPrintable(f[1]) {
		return request{}, errFrame
	}
	return request{ClusterID: string(f[0]), Advertise: string(f[1]), Payload: f[2]}, nil
}

func (r refused) appendTo(dst []byte) []byte {
	return appendFields(append(dst, r.Code), []byte(r.Text[:min(len(r.Text), maxRefusalText)]))
}

func parseRefused(b []byte) (refused, error) {
	if len(b) == 0 {
		return refused{}, errFrame
	}
	f, err := parseFields(b[1:], maxRefusalText)
	if err != nil {
		return refused{}, err
	}
	return refused{Code: b[0], Text: printableText(f[0])}, nil
}

func appendFields(dst []byte, fields ...[]byte) []byte {
	for _, f := range fields {
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(f)))
		dst = append(dst, f...)
	}
	return dst
}

// parseFields reads exactly one field per limit and nothing after them.
func parseFields(b []byte, limits ...int) ([][]byte, error) {
	fields := make([][]byte, len(limits))
	for i, limit := range limits {
		if len(b) < 4 {
			return nil, errFrame
		}
		n := binary.BigEndian.Uint32(b)
		b = b[4:]
		if uint64(n) > uint64(limit) || uint64(n) > uint64(len(b)) {
			return nil, errFrame
		}
		fields[i], b = b[:n:n], b[n:]
	}
	if len(b) != 0 {
		return nil, errFrame
	}
	return fields, nil
}

// printableText makes a text of another host harmless for a terminal.
func printableText(b []byte) string {
	out := make([]rune, 0, len(b))
	for _, r := range string(b) {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0xfffd {
			r = '?'
		}
		out = append(out, r)
	}
	return string(out)
}
