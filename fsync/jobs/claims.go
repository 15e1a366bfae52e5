package jobs

import (
	"sync"
	"time"

	"saltclusterd/gossip/node"
)

// claims keep two peers from sending the same job at once.
type claims struct {
	hold time.Duration

	mu sync.Mutex
	by map[string]claim
}

type claim struct {
	node  node.ID
	until time.Time
}

func newClaims(hold time.Duration) *claims { return &claims{hold: hold, by: map[string]claim{}} }

// take says whether a job may be wanted of a peer now.
func (c *claims) take(jid string, from node.ID) bool {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if is, ok := c.by[jid]; ok && is.node != from && now.Before(is.until) {
		return false
	}
	if len(c.by) > 4*maxDigest {
		for jid, is := range c.by {
			if !now.Before(is.until) {
				delete(c.by, jid)
			}
		}
	}
	c.by[jid] = claim{from, now.Add(c.hold)}
	return true
}
