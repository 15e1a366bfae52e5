package saltcrypt

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
)

// What crypto/rsa does around the private and the public operation, for where that is done by another package (RFC 8017).

// hashNames are the beginnings of DigestInfo, up to the digest, of what sigHash knows (RFC 8017, 9.2, note 1).
var hashNames = map[crypto.Hash]string{
	crypto.SHA1:   "\x30\x21\x30\x09\x06\x05\x2b\x0e\x03\x02\x1a\x05\x00\x04\x14",
	crypto.SHA224: "\x30\x2d\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x04\x05\x00\x04\x1c",
}

// padPKCS1 is EMSA-PKCS1-v1_5 (9.2) in k bytes, which are enough for any key that is accepted.
func padPKCS1(h crypto.Hash, sum []byte, k int) []byte {
	name := hashNames[h]
	em := bytes.Repeat([]byte{0xff}, k)
	em[0], em[1] = 0, 1
	end := em[k-len(name)-len(sum):]
	em[k-len(end)-1] = 0
	copy(end[copy(end, name):], sum)
	return em
}

// maxOAEP is how long a message may be that padOAEP makes k bytes of; negative where not even none fits.
func maxOAEP(h crypto.Hash, k int) int { return k - 2*h.Size() - 2 }

// padOAEP is EME-OAEP encoding (7.1.1, step 2) of a message that is not too long (maxOAEP). The first of the k bytes is nought, so that it is smaller than
// any modulus of k bytes.
func padOAEP(h crypto.Hash, msg, label []byte, k int) []byte {
	size := h.Size()
	em := make([]byte, k)
	seed, db := em[1:1+size], em[1+size:]
	copy(db, digest(h, label))
	db[len(db)-len(msg)-1] = 1
	copy(db[len(db)-len(msg):], msg)
	_, _ = rand.Read(seed) // never fails (crypto/rand)
	maskMGF1(db, h, seed)
	maskMGF1(seed, h, db)
	return em
}

// unpadOAEP is EME-OAEP decoding (7.1.2, step 3) without a label, of what is as long as the key. What is wrong with it cannot be told from outside, by
// time either: one who knew whether the first byte is nought could open what others have sealed (Manger's attack). It writes into em.
// Errors: ErrDecrypt.
func unpadOAEP(h crypto.Hash, em []byte) ([]byte, error) {
	size := h.Size()
	if len(em) < 2*size+2 {
		return nil, ErrDecrypt
	}
	good := subtle.ConstantTimeByteEq(em[0], 0)
	seed, db := em[1:1+size], em[1+size:]
	maskMGF1(seed, h, db)
	maskMGF1(db, h, seed)
	good &= subtle.ConstantTimeCompare(db[:size], digest(h, nil))

	// Noughts, a one, the message: looking is nought once the one was found, and at is where.
	rest := db[size:]
	looking, at := 1, 0
	for i, b := range rest {
		nought, one := subtle.ConstantTimeByteEq(b, 0), subtle.ConstantTimeByteEq(b, 1)
		at = subtle.ConstantTimeSelect(looking&one, i, at)
		good &= subtle.ConstantTimeSelect(looking, nought|one, 1)
		looking &^= one
	}
	if good&(1-looking) != 1 {
		return nil, ErrDecrypt
	}
	return rest[at+1:], nil
}

// maskMGF1 is MGF1 (B.2.1) of seed, over dst. What is hashed lies beside each other on the stack: a hash that takes it in pieces is memory for the collector.
func maskMGF1(dst []byte, h crypto.Hash, seed []byte) {
	var room [MaxKeyBits/8 + 4]byte
	in := room[:len(seed)+4]
	copy(in, seed)
	var sum [sha256.Size]byte
	for i := uint32(0); len(dst) > 0; i++ {
		binary.BigEndian.PutUint32(in[len(seed):], i)
		dst = dst[subtle.XORBytes(dst, dst, sumInto(&sum, h, in)):]
	}
	clear(room[:])
}

// sumInto is the digest of data, in room where it fits.
func sumInto(room *[sha256.Size]byte, h crypto.Hash, data []byte) []byte {
	switch h {
	case crypto.SHA1:
		sum := sha1.Sum(data)
		return room[:copy(room[:], sum[:])]
	case crypto.SHA224:
		sum := sha256.Sum224(data)
		return room[:copy(room[:], sum[:])]
	case crypto.SHA256:
		*room = sha256.Sum256(data)
		return room[:]
	}
	d := h.New()
	d.Write(bytes.Clone(data)) // what an interface is given is on the heap, from the beginning
	return d.Sum(nil)
}
