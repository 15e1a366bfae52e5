package gossip

import (
	"bufio"
	"bytes"
	"compress/lzw"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
)

// memberlist ends the process when a sender that has a key sends it nothing, encrypted, or a padding longer than the
// message, and reserves memory by what a message says of its own size. And any claim about another node with the
// greatest incarnation there is, is believed for good, because no node can contradict it with a greater one. So
// whatever comes is opened here first, and only what memberlist may have is passed on, still sealed. A message that no
// key opens passes: memberlist drops it.

// Bounds. Everything that a hundred nodes know of each other has 64 KiB.
const (
	maxStream   = 1 << 20 // bytes of a message in a stream
	maxUnpacked = 4 << 20 // bytes of what it unpacks to
	maxNodes    = 4096    // in an exchange of all
	maxStreams  = 32      // of others at a time
)

// memberlist's kinds of messages and wrappings, as far as they matter here.
const (
	msgSuspect  = 3
	msgAlive    = 4
	msgDead     = 5
	msgPushPull = 6
	msgCompound = 7
	msgUser     = 8
	msgCompress = 9
	msgEncrypt  = 10
	msgChecksum = 12
	msgLabel    = 244
)

// The only encryption that we use: a byte with its version, a nonce, AES-GCM.
const (
	sealVersion = 1
	sealNonce   = 12
	sealTag     = 16
)

var errVet = errors.New("no honest member sends this")

// vetter looks at what comes before memberlist does.
type vetter struct {
	label string
	keys  func() [][]byte
	now   func() time.Time
}

// Incarnations number what a node says of itself: one more each time it has news, or contradicts. Honest ones stay
// below the first bound for a lifetime. Above it the bound grows with the clock, faster than honest nodes do: whoever
// goes there at once is refused, and whoever is driven there has room to contradict a moment later. The end of the
// numbers is years away.
const (
	someIncarnations = 1 << 30
	incarnationRate  = 8 // a second
)

var incarnationsSince = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func maxIncarnation(now time.Time) int64 {
	passed := max(0, int64(now.Sub(incarnationsSince)/time.Second))
	return min(someIncarnations+incarnationRate*passed, math.MaxUint32)
}

// checkIncarnation checks the number of a claim.
func (v vetter) checkIncarnation(incarnation uint32) error {
	if most := maxIncarnation(v.now()); int64(incarnation) > most {
		return fmt.Errorf("%w: incarnation %d, of %d at most by now", errVet, incarnation, most)
	}
	return nil
}

// checkPacket looks at a packet.
func (v vetter) checkPacket(b []byte) error {
	n := 2 + len(v.label)
	if len(b) < n || b[0] != msgLabel || int(b[1]) != len(v.label) || string(b[2:n]) != v.label {
		return nil // another cluster's; memberlist drops it
	}
	plain, opened, err := v.decryptMessage(b[n:], []byte(v.label))
	if err != nil || !opened {
		return err
	}
	if len(plain) >= 5 && plain[0] == msgChecksum {
		plain = plain[5:]
	}
	return v.checkMessage(plain, false)
}

// readStream reads the one message of a stream. It returns all that it has read, for memberlist to read.
func (v vetter) readStream(r *bufio.Reader) ([]byte, error) {
	var seen bytes.Buffer
	take := func(n int) ([]byte, error) {
		from := seen.Len()
		_, err := io.CopyN(&seen, r, int64(n))
		return seen.Bytes()[from:], err
	}
	head, err := take(1)
	if err == nil && head[0] == msgLabel {
		if head, err = take(1); err == nil {
			if _, err = take(int(head[0])); err == nil {
				head, err = take(1)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if head[0] != msgEncrypt {
		return nil, fmt.Errorf("%w: a stream that is not encrypted", errVet)
	}
	length, err := take(4)
	if err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(length)
	if size > maxStream {
		return nil, fmt.Errorf("%w: a message of %d bytes", errVet, size)
	}
	aad := append(append([]byte{msgEncrypt}, length...), v.label...)
	sealed, err := take(int(size))
	if err != nil {
		return nil, err
	}
	plain, opened, err := v.decryptMessage(sealed, aad)
	if err == nil && opened {
		err = v.checkMessage(plain, true)
	}
	return seen.Bytes(), err
}

// decryptMessage decrypts with the first key that fits.
func (v vetter) decryptMessage(b, aad []byte) (plain []byte, opened bool, err error) {
	if len(b) < 1+sealNonce+sealTag || b[0] != sealVersion {
		return nil, false, fmt.Errorf("%w: encrypted in another way", errVet)
	}
	for _, key := range v.keys() {
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, false, err
		}
		gcm, err := cipher.NewGCM(block)
		if err != nil {
			return nil, false, err
		}
		if plain, err := gcm.Open(nil, b[1:1+sealNonce], b[1+sealNonce:], aad); err == nil {
			return plain, true, nil
		}
	}
	return nil, false, nil
}

// checkMessage looks at a message in the clear. It is packed once at most, and then perhaps some in one.
func (v vetter) checkMessage(b []byte, stream bool) error {
	if len(b) == 0 {
		return fmt.Errorf("%w: nothing", errVet)
	}
	if b[0] == msgCompress {
		var err error
		if b, err = decompressMessage(b[1:]); err != nil {
			return err
		}
		if len(b) == 0 {
			return fmt.Errorf("%w: nothing, packed", errVet)
		}
	}
	switch {
	case stream && b[0] == msgPushPull:
		return v.checkPushPull(b[1:])
	case stream && b[0] == msgUser, b[0] == msgCompress:
		return fmt.Errorf("%w: kind %d", errVet, b[0])
	case !stream && b[0] == msgCompound:
		return v.checkCompound(b[1:])
	case !stream:
		return v.checkClaim(b)
	}
	return nil
}

// checkPushPull looks at an exchange of all that two nodes know.
func (v vetter) checkPushPull(b []byte) error {
	var h struct {
		Nodes, UserStateLen int
		Join                bool
	}
	dec := codec.NewDecoderBytes(b, &codec.MsgpackHandle{})
	if err := dec.Decode(&h); err != nil {
		return fmt.Errorf("%w: %w", errVet, err)
	}
	if h.Nodes < 0 || h.Nodes > maxNodes || h.UserStateLen != 0 {
		return fmt.Errorf("%w: %d nodes and %d bytes besides", errVet, h.Nodes, h.UserStateLen)
	}
	for range h.Nodes {
		var c struct{ Incarnation uint32 }
		if err := dec.Decode(&c); err != nil {
			return fmt.Errorf("%w: %w", errVet, err)
		}
		if err := v.checkIncarnation(c.Incarnation); err != nil {
			return err
		}
	}
	return nil
}

// checkClaim looks at what is said of a node, if that is what a message is.
func (v vetter) checkClaim(b []byte) error {
	if len(b) == 0 || b[0] < msgSuspect || b[0] > msgDead {
		return nil
	}
	var c struct{ Incarnation uint32 }
	if err := codec.NewDecoderBytes(b[1:], &codec.MsgpackHandle{}).Decode(&c); err != nil {
		return fmt.Errorf("%w: %w", errVet, err)
	}
	return v.checkIncarnation(c.Incarnation)
}

// checkCompound looks at messages in one: a count, their lengths, they themselves. None is packed again.
func (v vetter) checkCompound(b []byte) error {
	if len(b) == 0 || len(b) < 1+2*int(b[0]) {
		return fmt.Errorf("%w: several in one, cut off", errVet)
	}
	lengths, rest := b[1:1+2*int(b[0])], b[1+2*int(b[0]):]
	for ; len(lengths) > 0; lengths = lengths[2:] {
		n := int(binary.BigEndian.Uint16(lengths))
		if n > len(rest) {
			return nil // memberlist looks at none from here on
		}
		if n > 0 && (rest[0] == msgCompound || rest[0] == msgCompress) {
			return fmt.Errorf("%w: a compound message within another", errVet)
		}
		if err := v.checkClaim(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// decompressMessage undoes memberlist's compression.
func decompressMessage(b []byte) ([]byte, error) {
	var c struct {
		Algo uint8
		Buf  []byte
	}
	if err := codec.NewDecoderBytes(b, &codec.MsgpackHandle{}).Decode(&c); err != nil {
		return nil, fmt.Errorf("%w: %w", errVet, err)
	}
	const bits = 8
	r := lzw.NewReader(bytes.NewReader(c.Buf), lzw.LSB, bits)
	defer r.Close()
	out, err := io.ReadAll(io.LimitReader(r, maxUnpacked+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errVet, err)
	case len(out) > maxUnpacked:
		return nil, fmt.Errorf("%w: it unpacks to more than %d bytes", errVet, maxUnpacked)
	}
	return out, nil
}
