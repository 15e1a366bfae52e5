package sidecar

import (
	"sync"

	"saltclusterd/sidecar/saltwire"
)

// maxPillars bounds the pillars of which it is remembered since when the local master's cache is good.
const maxPillars = 200_000

// pillarCache tells which pillars the local master may answer from its cache (pillar_cache: True). One that was asked
// for anew has been cleared on one master only, the ring's owner of the minion at that time. So what another master has
// cached, or this one before it was the owner without a break, may be older than what the minion has asked for: it is
// cleared before it is used. So it is when another master's has taken its place, for targets.
type pillarCache struct {
	mu    sync.Mutex
	round uint64                       // counts the changes among masters
	good  map[string]map[string]uint64 // by minion and environments: the round in which the cache was cleared
	count int                          // of rounds in good
}

// startRound notes that minions may have been, or will be, another master's.
func (t *pillarCache) startRound() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.round++
}

// isTrusted says whether what is cached of a minion's pillar is good, and that it will be from now on.
func (t *pillarCache) isTrusted(id, envs string, owner bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !owner {
		t.drop(id)
		return false
	}
	round, had := t.good[id][envs]
	if had && round == t.round {
		return true
	}
	if t.good == nil || t.count >= maxPillars { // then each is rendered once more
		t.good, t.count, had = map[string]map[string]uint64{}, 0, false
	}
	if t.good[id] == nil {
		t.good[id] = map[string]uint64{}
	}
	if t.good[id][envs] = t.round; !had {
		t.count++
	}
	return false
}

// forget says that nothing that is cached of a minion is good.
func (t *pillarCache) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(id)
}

// drop is forget for who holds the lock.
func (t *pillarCache) drop(id string) {
	t.count -= len(t.good[id])
	delete(t.good, id)
}

// PillarComes is to be called before a pillar that another master rendered takes the place of the one that the local
// master has cached of a minion.
func (p *Proxy) PillarComes(id string) { p.pillars.forget(id) }

// renewPillar has the local master render a pillar anew that it may have cached too long ago.
func (p *Proxy) renewPillar(c *call) {
	if !p.cfg.PillarCache || c.peek.Cmd != "_pillar" {
		return
	}
	raw := &c.peek.Raw
	envs := string(raw.PillarEnv) + "\x00" + string(raw.SaltEnv) + "\x00" + string(raw.Env)
	if p.pillars.isTrusted(c.peek.ID, envs, p.cfg.View().Owns(c.peek.ID)) {
		return
	}
	if plain, err := saltwire.WithTrue(c.plain, "clean_cache"); err == nil {
		c.replaceLoad(plain)
	}
}
