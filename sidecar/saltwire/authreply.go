package saltwire

import (
	"fmt"
	"slices"
)

// authFrame is more than what names, headers and a port need in a reply to a sign-in.
const authFrame = 128

// AuthAccept is the inner map of a reply that accepts a minion (docs/dev/protocol.md §3.3). Token, AES and Session are
// OAEP ciphertexts for the minion's key, Sig is the X9.31 signature of the hex SHA-256 of the AES key string.
type AuthAccept struct {
	PubKey      string // clean text of master.pub
	PublishPort int
	Token       []byte // written when not nil: the request had a token that decrypted
	AES         []byte
	Session     []byte
	Sig         []byte
	Nonce       string
	PubSig      string // master_sign_pubkey
	HasPubSig   bool
}

// AppendAuthAccept writes the inner map, to be signed and put into AppendSigned.
func AppendAuthAccept(dst []byte, a AuthAccept) []byte {
	n := 7
	if a.HasPubSig {
		n++
	}
	if a.Token != nil {
		n++
	}
	dst = slices.Grow(dst,
		authFrame+len(a.PubKey)+len(a.PubSig)+len(a.Token)+len(a.AES)+len(a.Session)+len(a.Sig)+len(a.Nonce))
	dst = AppendMapHeader(dst, n)
	dst = AppendRaw(AppendRaw(dst, "enc"), "pub")
	dst = AppendRaw(AppendRaw(dst, "pub_key"), a.PubKey)
	dst = AppendInt(AppendRaw(dst, "publish_port"), int64(a.PublishPort))
	if a.HasPubSig {
		dst = AppendRaw(AppendRaw(dst, "pub_sig"), a.PubSig)
	}
	if a.Token != nil {
		dst = AppendRaw(AppendRaw(dst, "token"), a.Token)
	}
	dst = AppendRaw(AppendRaw(dst, "aes"), a.AES)
	dst = AppendRaw(AppendRaw(dst, "session"), a.Session)
	dst = AppendRaw(AppendRaw(dst, "sig"), a.Sig)
	return AppendRaw(AppendRaw(dst, "nonce"), a.Nonce)
}

// AppendAuthRet writes the inner map of any other signed reply. ret is true (pending), false (rejected: the minion
// exits!) or a text ("full"); a value of another type is written as its text.
func AppendAuthRet(dst []byte, ret any, nonce string) []byte {
	dst = AppendMapHeader(dst, 2)
	dst = appendRet(AppendRaw(dst, "ret"), ret)
	return AppendRaw(AppendRaw(dst, "nonce"), nonce)
}

// AppendSigned writes the outer map of a signed reply: {"enc":"clear","load":load,"sig":sig}.
func AppendSigned(dst, load, sig []byte) []byte {
	dst = slices.Grow(dst, authFrame+len(load)+len(sig))
	dst = AppendMapHeader(dst, 3)
	dst = AppendRaw(AppendRaw(dst, "enc"), EncClear)
	dst = AppendRaw(AppendRaw(dst, "load"), load)
	return AppendRaw(AppendRaw(dst, "sig"), sig)
}

// AppendClearRet writes an unsigned reply, {"enc":"clear","load":{"ret":ret}}: for ReasonEncAlgo and ReasonSigAlgo.
func AppendClearRet(dst []byte, ret any) []byte {
	dst = AppendMapHeader(dst, 2)
	dst = AppendRaw(AppendRaw(dst, "enc"), EncClear)
	dst = AppendMapHeader(AppendRaw(dst, "load"), 1)
	return appendRet(AppendRaw(dst, "ret"), ret)
}

func appendRet(dst []byte, ret any) []byte {
	switch ret := ret.(type) {
	case bool:
		return AppendBool(dst, ret)
	case string:
		return AppendRaw(dst, ret)
	}
	return AppendRaw(dst, fmt.Sprint(ret))
}

// BadLoad returns the reply stock masters give to what they cannot use: the msgpack string "bad load". It is also the
// way to make a minion sign in again and repeat its request.
func BadLoad() []byte { return AppendRaw(nil, "bad load") }
