package herd

import (
	"crypto/sha256"
	"sync"

	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// opened is what a publication turned out to be under one key.
type opened struct {
	ok     bool // the key opens it
	signed bool // by the master, as far as it is signed at all
	pub    saltwire.PubPeek
	job    *publication
	err    error // it opens, but is not a publication
}

// keptBodies is how many publications are remembered per key. Minions that lag further behind cost more.
const keptBodies = 256

// wallet is one AES key as all minions that hold it use it: what one of them has opened and verified, none opens again.
type wallet struct {
	key       saltcrypt.Key
	crypticle *saltcrypt.Crypticle
	master    *saltcrypt.PublicKey

	mu     sync.Mutex
	bodies map[[sha256.Size]byte]*opened
	order  [keptBodies][sha256.Size]byte
	next   int
}

func newWallet(key saltcrypt.Key, master *saltcrypt.PublicKey) *wallet {
	return &wallet{key: key, crypticle: saltcrypt.NewCrypticle(key), master: master,
		bodies: map[[sha256.Size]byte]*opened{}}
}

// open does with a body what each minion would do with it.
func (w *wallet) open(body []byte) *opened {
	sum := sha256.Sum256(body)
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.bodies[sum]; o != nil {
		return o
	}
	o := w.look(body)
	delete(w.bodies, w.order[w.next])
	w.order[w.next] = sum
	w.next = (w.next + 1) % keptBodies
	w.bodies[sum] = o
	return o
}

func (w *wallet) look(body []byte) *opened {
	env, err := saltwire.ParsePub(body)
	if err != nil {
		return &opened{ok: true, err: err}
	}
	o := &opened{signed: true}
	if env.Sig != nil {
		o.signed = w.master.Verify(env.SigAlgo, env.Load, env.Sig) == nil
	}
	plain, err := w.crypticle.Open(nil, env.Load)
	if err != nil {
		return o
	}
	o.ok = true
	if o.pub, o.err = saltwire.PeekPub(plain); o.err == nil {
		o.job, o.err = parsePublication(plain)
	}
	return o
}
