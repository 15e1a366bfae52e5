package signin

import (
	"sync"

	"saltclusterd/sidecar/saltcrypt"
)

// maxParsed bounds the cache of minions' keys; one takes about 3 KiB.
const maxParsed = 50_000

// minionKey is a minion's public key with what was last sealed to it.
type minionKey struct {
	*saltcrypt.PublicKey

	mu      sync.Mutex
	sealed  [seals]sealed
	session struct {
		id, text string
		seed     uint64 // generation of the seed
	}
}

// sessionText is the session key of the minion of that id, as text: derived once for each generation of the cluster's
// seed.
func (k *minionKey) sessionText(id, pub string, keys Keys) string {
	seed := keys.Generation() // before the key is derived: should it change in between, the next sign-in finds it
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := &k.session; s.text == "" || s.id != id || s.seed != seed {
		s.id, s.seed, s.text = id, seed, keys.Session(id, pub).Text()
	}
	return k.session.text
}

// seal is which secret of a reply is sealed.
type seal int

const (
	sealAES seal = iota
	sealSession
	seals
)

// sealed is a secret as it was encrypted to a minion.
type sealed struct {
	algo, text string
	ciphertext []byte
}

// encryptSecret seals a secret that is the same in every reply of an epoch. So may its ciphertext be: whoever listens
// learns that the secret has not changed, which the reply's "sig" tells as well, and that the reply is a new one is
// said by the signature over it and its nonce.
func (k *minionKey) encryptSecret(which seal, algo, text string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := &k.sealed[which]
	if s.ciphertext == nil || s.algo != algo || s.text != text {
		ct, err := k.EncryptOAEP(algo, []byte(text))
		if err != nil {
			return nil, err
		}
		*s = sealed{algo, text, ct}
	}
	return s.ciphertext, nil
}

// keyCache keeps minions' keys by their clean text, for one is parsed again at each sign-in otherwise.
type keyCache struct {
	max int

	mu   sync.Mutex
	keys map[string]*minionKey
}

func newKeyCache(limit int) *keyCache {
	return &keyCache{max: limit, keys: map[string]*minionKey{}}
}

// hasKey says whether the key of a text was parsed and is still kept.
func (c *keyCache) hasKey(pem string) bool {
	pem = saltcrypt.CleanKey(pem)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.keys[pem] != nil
}

func (c *keyCache) findKey(pem string) (*minionKey, error) {
	pem = saltcrypt.CleanKey(pem)
	c.mu.Lock()
	key, ok := c.keys[pem]
	c.mu.Unlock()
	if ok {
		return key, nil
	}
	parsed, err := saltcrypt.ParsePublicKey(pem)
	if err != nil {
		return nil, err
	}
	key = &minionKey{PublicKey: parsed}
	c.mu.Lock()
	defer c.mu.Unlock()
	for old := range c.keys { // any one: a fleet larger than the cache only parses more often
		if len(c.keys) < c.max {
			break
		}
		delete(c.keys, old)
	}
	c.keys[pem] = key
	return key, nil
}
