package guard

import (
	"crypto/subtle"
	"sync"

	"saltclusterd/sidecar/saltcrypt"
)

// tokenText is what a minion signs to prove that a request is its own (salt/crypt.py:AsyncAuth.gen_token(b"salt")).
const tokenText = "salt"

// tokenCache remembers the tokens that were verified. A token is the X9.31 signature of one word, so it is constant for
// a key and can be compared instead of verified again.
type tokenCache struct {
	max int

	mu sync.RWMutex
	m  map[string]token // by minion id
}

type token struct {
	key *saltcrypt.PublicKey
	tok []byte
}

func newTokenCache(limit int) *tokenCache { return &tokenCache{max: limit, m: map[string]token{}} }

// CheckToken tells whether tok proves that its sender has the key of a minion.
func (g *Guard) CheckToken(id string, key *saltcrypt.PublicKey, tok []byte) bool {
	return g.tokens.verifyToken(id, key, tok)
}

// verifyToken says whether tok is the token of key. Only the owner of the session key gets as far as this.
func (c *tokenCache) verifyToken(id string, key *saltcrypt.PublicKey, tok []byte) bool {
	if key == nil || len(tok) == 0 {
		return false
	}
	c.mu.RLock()
	known, ok := c.m[id]
	c.mu.RUnlock()
	if ok && (known.key == key || known.key.Equal(key)) && subtle.ConstantTimeCompare(known.tok, tok) == 1 {
		return true
	}
	text, err := key.VerifyX931(tok)
	if err != nil || subtle.ConstantTimeCompare(text, []byte(tokenText)) != 1 {
		return false
	}
	c.storeToken(id, token{key, append([]byte(nil), tok...)})
	return true
}

func (c *tokenCache) storeToken(id string, t token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.m[id]; !ok {
		for old := range c.m { // any one: a larger fleet only verifies more often
			if len(c.m) < c.max {
				break
			}
			delete(c.m, old)
		}
	}
	c.m[id] = t
}
