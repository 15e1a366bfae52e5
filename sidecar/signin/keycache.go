package signin

import (
	"sync"

	"saltclusterd/sidecar/saltcrypt"
)

// maxParsed bounds the cache of parsed keys; one takes about 2 KiB.
const maxParsed = 50_000

// keyCache keeps parsed public keys by their text, for a key is parsed again at each sign-in otherwise.
type keyCache struct {
	max int

	mu   sync.Mutex
	keys map[string]*saltcrypt.PublicKey
}

func newKeyCache(max int) *keyCache {
	return &keyCache{max: max, keys: map[string]*saltcrypt.PublicKey{}}
}

func (c *keyCache) get(pem string) (*saltcrypt.PublicKey, error) {
	c.mu.Lock()
	key, ok := c.keys[pem]
	c.mu.Unlock()
	if ok {
		return key, nil
	}
	key, err := saltcrypt.ParsePublicKey(pem)
	if err != nil {
		return nil, err
	}
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
