package hostile

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"

	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltcrypt"
)

// wrap says what is wrong with an envelope; the zero value: nothing.
type wrap struct {
	enc     packed
	version packed
	outer   packed // id outside
	inner   packed // id inside
	nonce   packed
	ts      packed
	tok     packed
	cut     int  // bytes that lack at the end
	tail    bool // bytes after it
	naked   bool // the load stands in it unsealed
	stale   bool // sealed with a key that is none
}

// rewrap does one or two things to the envelope.
func (r *Request) rewrap(d *dice) {
	w := &r.wrap
	for range 1 + d.IntN(2) {
		switch d.IntN(11) {
		case 0:
			w.enc = one(d, text("pub"), text(""), text("AES"), text("aes\x00"), number(1), null, list(text("aes")))
		case 1:
			w.version = one(d, number(0), number(1), number(2), number(4), number(-1), number(1<<40), text("3"), null, float(3),
				dict())
		case 2:
			w.outer = one(d, text(d.other()), text(d.id()), d.odd())
		case 3:
			w.inner = one(d, text(d.other()), text(d.id()), d.odd(), null)
		case 4:
			w.nonce = one(d, text(""), text(strings.Repeat("0", 32)), text(d.mark()), d.odd())
		case 5:
			w.ts = one(d, number(0), number(1<<62), number(-1), d.odd())
		case 6:
			w.tok = one(d, d.token(), text(string(d.who.token)), d.odd())
		case 7:
			w.cut = 1 + d.IntN(40)
		case 8:
			w.tail = true
		case 9:
			w.naked = true
		case 10:
			w.stale = true
		}
	}
	r.twist("envelope")
}

// credentials are what makes a request authentic.
type credentials struct {
	id      string
	tok     []byte
	session *saltcrypt.Crypticle
}

// body seals a request, as it is to be said now.
func (r *Request) body(c credentials) []byte {
	w := r.wrap
	fields := append([]entry(nil), r.fields...)
	if r.Class == router.AES {
		fields = append(fields, pair("id", or(w.inner, text(c.id))), pair("nonce", or(w.nonce, text(newNonce()))),
			pair("ts", or(w.ts, number(time.Now().Unix()))), pair("tok", or(w.tok, text(string(c.tok)))))
	}
	load, enc := dict(fields...), "clear"
	if r.Class == router.AES {
		enc = "aes"
		if session := c.session; !w.naked {
			if w.stale {
				session = saltcrypt.NewCrypticle(saltcrypt.Key{1})
			}
			load = text(string(session.Seal(nil, load, nil)))
		}
	}
	out := dict(pair("enc", or(w.enc, text(enc))), pair("load", load), pair("version", or(w.version, number(3))),
		pair("id", or(w.outer, text(c.id))),
		pair("enc_algo", text(saltcrypt.OAEPSHA1)), pair("sig_algo", text(saltcrypt.PKCS1v15SHA1)))
	if w.tail {
		out = append(out, 0xc0)
	}
	return out[:max(0, len(out)-w.cut)]
}

func or(v, usual packed) packed {
	if v != nil {
		return v
	}
	return usual
}

func newNonce() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}
