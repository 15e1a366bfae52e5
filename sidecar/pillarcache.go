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
// cleared before it is used.
type pillarCache struct {
	mu    sync.Mutex
	round uint64            // counts the changes among masters
	good  map[string]uint64 // by minion and environment: the round in which the cache was cleared
}

// startRound notes that minions may have been, or will be, another master's.
func (t *pillarCache) startRound() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.round++
}

// isTrusted says whether what is cached of a pillar is good, and that it will be from now on.
func (t *pillarCache) isTrusted(pillar string, owner bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !owner {
		delete(t.good, pillar)
		return false
	}
	if round, ok := t.good[pillar]; ok && round == t.round {
		return true
	}
	if t.good == nil || len(t.good) >= maxPillars { // then each is rendered once more
		t.good = map[string]uint64{}
	}
	t.good[pillar] = t.round
	return false
}

// renewPillar has the local master render a pillar anew that it may have cached too long ago.
func (p *Proxy) renewPillar(c *call) {
	if !p.cfg.PillarCache || c.peek.Cmd != "_pillar" {
		return
	}
	raw := &c.peek.Raw
	pillar := c.peek.ID + "\x00" + string(raw.PillarEnv) + "\x00" + string(raw.SaltEnv) + "\x00" + string(raw.Env)
	if p.pillars.isTrusted(pillar, p.cfg.View().Owns(c.peek.ID)) {
		return
	}
	if plain, err := saltwire.WithTrue(c.plain, "clean_cache"); err == nil {
		c.replaceLoad(plain)
	}
}
