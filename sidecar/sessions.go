package sidecar

import (
	"sync"

	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/wall"
)

// session is a minion's session key, derived from the cluster's seed, the id and the accepted key, ready for use.
type session struct {
	pub       string
	seed      uint64 // generation of the cluster's seed
	key       saltcrypt.Key
	crypticle *saltcrypt.Crypticle
	public    *saltcrypt.PublicKey
	minion    *wall.Minion
}

// sessionTable keeps the sessions of minions that talk to this node. An entry is good for one public key and one seed:
// when the key of an id changes, so does its session, and when the cluster's seed does, all of them.
type sessionTable struct {
	derive func(id, pub string) saltcrypt.Key
	seed   func() uint64
	minion func(id, pub string) *wall.Minion // what the rules remember; nil: nothing
	max    int

	mu sync.RWMutex
	m  map[string]*session
}

func newSessionTable(limit int, derive func(id, pub string) saltcrypt.Key, seed func() uint64) *sessionTable {
	return &sessionTable{derive: derive, seed: seed, max: limit, m: map[string]*session{}}
}

// findSession returns the session of id under its accepted key pub.
func (t *sessionTable) findSession(id, pub string) (*session, error) {
	t.mu.RLock()
	s := t.m[id]
	t.mu.RUnlock()
	seed := t.seed() // before the key is derived: should it change in between, the next look finds it
	if s != nil && s.pub == pub && s.seed == seed {
		return s, nil
	}
	public, err := saltcrypt.ParsePublicKey(pub)
	if err != nil {
		return nil, err
	}
	key := t.derive(id, pub)
	s = &session{pub: pub, seed: seed, key: key, crypticle: saltcrypt.NewCrypticle(key), public: public}
	if t.minion != nil {
		s.minion = t.minion(id, pub)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for old := range t.m { // any one: a larger fleet only derives more often
		if len(t.m) < t.max {
			break
		}
		delete(t.m, old)
	}
	t.m[id] = s
	return s, nil
}
