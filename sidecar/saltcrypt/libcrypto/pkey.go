//go:build linux && (amd64 || arm64) && !nolibcrypto

package libcrypto

import (
	"crypto"
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// From openssl/evp.h and openssl/rsa.h.
const (
	pkeyRSA      = 6
	paddingPKCS1 = 1
	paddingOAEP  = 4
)

var errSize = errors.New("not of the size of the key")

// pkey is a private key in the memory of OpenSSL (EVP_PKEY).
type pkey struct {
	*library
	key  uintptr
	size int // of the modulus, in bytes
}

// newEngine gives a key, as PKCS#1 or PKCS#8, to the host's library. OpenSSL erases its copy when the engine is
// collected.
func newEngine(der []byte) (engine, error) {
	l, err := load()
	if err != nil {
		return nil, err
	}
	return l.newKey(der)
}

func (l *library) newKey(der []byte) (*pkey, error) {
	if len(der) == 0 {
		return nil, fmt.Errorf("%w: empty key", ErrUnavailable)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&der[0])
	// d2i_PrivateKey advances it, beyond the end, where a Go pointer must not point.
	at := uintptr(unsafe.Pointer(&der[0]))
	key := l.decodeKey(pkeyRSA, 0, &at, len(der))
	runtime.KeepAlive(der)
	if key == 0 {
		return nil, fmt.Errorf("%w: d2i_PrivateKey: %s", ErrUnavailable, l.failure())
	}
	l.errClear() // what decoders tried in vain
	p := &pkey{library: l, key: key, size: int(l.keySize(key))}
	runtime.AddCleanup(p, l.keyFree, key)
	return p, nil
}

func (p *pkey) version() string { return p.versionText(versionText) }

func (p *pkey) hash(h crypto.Hash) uintptr {
	if h == crypto.SHA1 {
		return p.sha1()
	}
	return p.sha224()
}

// sign makes a PKCS#1 v1.5 signature of a digest.
func (p *pkey) sign(h crypto.Hash, digest []byte) ([]byte, error) {
	if len(digest) != h.Size() {
		return nil, errSize
	}
	return p.operate(func(ctx uintptr, out []byte, n *uint) (step string, ok bool) {
		switch {
		case p.library.signInit(ctx) != 1:
			return "EVP_PKEY_sign_init", false
		case p.setPadding(ctx, paddingPKCS1) != 1:
			return "EVP_PKEY_CTX_set_rsa_padding", false
		case p.setSignHash(ctx, p.hash(h)) != 1:
			return "EVP_PKEY_CTX_set_signature_md", false
		}
		return "EVP_PKEY_sign", p.library.sign(ctx, &out[0], n, &digest[0], uint(len(digest))) == 1
	})
}

// decrypt opens an OAEP ciphertext.
func (p *pkey) decrypt(h crypto.Hash, ct []byte) ([]byte, error) {
	if len(ct) != p.size {
		return nil, errSize
	}
	return p.operate(func(ctx uintptr, out []byte, n *uint) (step string, ok bool) {
		switch {
		case p.decryptInit(ctx) != 1:
			return "EVP_PKEY_decrypt_init", false
		case p.setPadding(ctx, paddingOAEP) != 1:
			return "EVP_PKEY_CTX_set_rsa_padding", false
		case p.setOAEPHash(ctx, p.hash(h)) != 1:
			return "EVP_PKEY_CTX_set_rsa_oaep_md", false
		case p.setMGF1Hash(ctx, p.hash(h)) != 1:
			return "EVP_PKEY_CTX_set_rsa_mgf1_md", false
		}
		return "EVP_PKEY_decrypt", p.library.decrypt(ctx, &out[0], n, &ct[0], uint(len(ct))) == 1
	})
}

// operate runs one operation with a context of its own. The queue of errors is the thread's, so the goroutine stays
// on it until the queue is read and empty.
func (p *pkey) operate(do func(ctx uintptr, out []byte, n *uint) (step string, ok bool)) ([]byte, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer runtime.KeepAlive(p)
	ctx := p.ctxNew(p.key, 0)
	if ctx == 0 {
		return nil, fmt.Errorf("EVP_PKEY_CTX_new: %s", p.failure())
	}
	defer p.ctxFree(ctx)
	out := make([]byte, p.size)
	n := uint(len(out))
	if step, ok := do(ctx, out, &n); !ok {
		return nil, fmt.Errorf("%s: %s", step, p.failure())
	}
	if n > uint(len(out)) {
		return nil, errSize
	}
	return out[:n], nil
}
