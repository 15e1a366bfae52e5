//go:build linux && (amd64 || arm64) && !nolibcrypto

package libcrypto

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/ebitengine/purego"
)

// library is what is used of libcrypto. The signatures are those of its headers, the same in all of OpenSSL 3 (man 3
// of each name). A uintptr is a pointer to an object of C.
type library struct {
	versionNum  func() uint
	versionText func(what int32) string
	initialize  func(options uint64, settings uintptr) int32
	errGet      func() uint
	errText     func(code uint, text []byte, size uint)
	errClear    func()

	decodeKey func(kind int32, key uintptr, der *uintptr, length int) uintptr
	keySize   func(key uintptr) int32
	keyFree   func(key uintptr)

	ctxNew       func(key, engine uintptr) uintptr
	ctxFree      func(ctx uintptr)
	setPadding   func(ctx uintptr, padding int32) int32
	signInit     func(ctx uintptr) int32
	setSignHash  func(ctx, hash uintptr) int32
	sign         func(ctx uintptr, sig *byte, sigSize *uint, digest *byte, size uint) int32
	decryptInit  func(ctx uintptr) int32
	setOAEPHash  func(ctx, hash uintptr) int32
	setMGF1Hash  func(ctx, hash uintptr) int32
	decrypt      func(ctx uintptr, msg *byte, msgSize *uint, ct *byte, size uint) int32
	sha1, sha224 func() uintptr
}

func (l *library) symbols() map[string]any {
	return map[string]any{
		"OpenSSL_version_num": &l.versionNum, "OpenSSL_version": &l.versionText, "OPENSSL_init_crypto": &l.initialize,
		"ERR_get_error": &l.errGet, "ERR_error_string_n": &l.errText, "ERR_clear_error": &l.errClear,
		"d2i_PrivateKey": &l.decodeKey, "EVP_PKEY_get_size": &l.keySize, "EVP_PKEY_free": &l.keyFree,
		"EVP_PKEY_CTX_new": &l.ctxNew, "EVP_PKEY_CTX_free": &l.ctxFree, "EVP_PKEY_CTX_set_rsa_padding": &l.setPadding,
		"EVP_PKEY_sign_init": &l.signInit, "EVP_PKEY_CTX_set_signature_md": &l.setSignHash, "EVP_PKEY_sign": &l.sign,
		"EVP_PKEY_decrypt_init": &l.decryptInit, "EVP_PKEY_CTX_set_rsa_oaep_md": &l.setOAEPHash,
		"EVP_PKEY_CTX_set_rsa_mgf1_md": &l.setMGF1Hash, "EVP_PKEY_decrypt": &l.decrypt,
		"EVP_sha1": &l.sha1, "EVP_sha224": &l.sha224,
	}
}

// From openssl/crypto.h.
const (
	initNoLoadConfig = 0x80
	initNoAtexit     = 0x80000
	versionText      = 0
)

// soname is the library of OpenSSL 3. That of 1.1 has other functions.
const soname = "libcrypto.so.3"

// load loads the library once in the life of a process; it is never unloaded.
var load = sync.OnceValues(func() (*library, error) { return open(soname) })

func open(name string) (*library, error) {
	runtime.LockOSThread() // dlerror and the queue of errors belong to the thread
	defer runtime.UnlockOSThread()
	handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	l := new(library)
	for name, function := range l.symbols() {
		symbol, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		purego.RegisterFunc(function, symbol)
	}
	if v := l.versionNum(); !usable(v) {
		return nil, fmt.Errorf("%w: %s is not to be used", ErrUnavailable, l.versionText(versionText))
	}
	if l.initialize(initNoLoadConfig|initNoAtexit, 0) != 1 {
		return nil, fmt.Errorf("%w: OPENSSL_init_crypto: %s", ErrUnavailable, l.failure())
	}
	return l, nil
}

// failure is the first error in the queue of this thread, as text, and empties the queue.
func (l *library) failure() string {
	code := l.errGet()
	if code == 0 {
		return "no reason given"
	}
	text := make([]byte, 256)
	l.errText(code, text, uint(len(text)))
	l.errClear()
	return cString(text)
}
