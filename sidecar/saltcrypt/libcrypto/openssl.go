//go:build libcrypto && cgo && linux

package libcrypto

// #cgo LDFLAGS: -ldl
// #cgo noescape lc_sign
// #cgo nocallback lc_sign
// #cgo noescape lc_decrypt
// #cgo nocallback lc_decrypt
// #include "openssl.h"
import "C"

import (
	"crypto"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

var errRefused = errors.New("OpenSSL refused")

// open loads the library, once in the life of a process: what is loaded stays.
var open = sync.OnceValue(func() error {
	if why := C.lc_open(); why != nil {
		return fmt.Errorf("%w: libcrypto.so.3: %s", ErrUnfit, C.GoString(why))
	}
	return nil
})

// openssl is a private key in OpenSSL's memory.
type openssl struct {
	key  unsafe.Pointer
	size int // of the modulus
}

// load gives a PKCS#1 key to the library. OpenSSL erases its numbers when nobody holds the engine any more.
func load(der []byte) (engine, error) {
	if err := open(); err != nil {
		return nil, err
	}
	key := C.lc_key(octets(der), C.size_t(len(der)))
	if key == nil {
		return nil, fmt.Errorf("%w: %s does not take the key", ErrUnfit, C.GoString(C.lc_version()))
	}
	o := &openssl{key: key, size: int(C.lc_size(key))}
	runtime.AddCleanup(o, func(key unsafe.Pointer) { C.lc_free(key) }, key)
	return o, nil
}

func (o *openssl) version() string { return C.GoString(C.lc_version()) }

func (o *openssl) sign(h crypto.Hash, digest []byte) ([]byte, error) {
	out := make([]byte, o.size)
	n := C.lc_sign(o.key, number(h), octets(digest), C.size_t(len(digest)), octets(out), C.size_t(len(out)))
	runtime.KeepAlive(o)
	return result(out, n)
}

func (o *openssl) decrypt(h crypto.Hash, ciphertext []byte) ([]byte, error) {
	out := make([]byte, o.size)
	n := C.lc_decrypt(o.key, number(h), octets(ciphertext), C.size_t(len(ciphertext)), octets(out), C.size_t(len(out)))
	runtime.KeepAlive(o)
	return result(out, n)
}

func result(out []byte, n C.long) ([]byte, error) {
	if n < 0 || int(n) > len(out) {
		return nil, errRefused
	}
	return out[:n], nil
}

// number is how the C side calls a hash; there are only these two in Salt.
func number(h crypto.Hash) C.int {
	if h == crypto.SHA1 {
		return C.LC_SHA1
	}
	return C.LC_SHA224
}

func octets(b []byte) *C.uchar { return (*C.uchar)(unsafe.Pointer(unsafe.SliceData(b))) }
