package operator

import (
	"context"
	"sync"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// examinePeers measures the round trip and the clock of every other member.
func (c *Cluster) examinePeers(ctx context.Context) []adminapi.CheckupPeer {
	ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
	defer cancel()
	out := []adminapi.CheckupPeer{}
	for _, m := range c.cfg.Log.View().Members() {
		if m.ID != c.cfg.Self {
			out = append(out, adminapi.CheckupPeer{Node: string(m.ID), Address: m.Addr})
		}
	}
	var wg sync.WaitGroup
	for i := range out {
		wg.Go(func() { c.examinePeer(ctx, &out[i]) })
	}
	wg.Wait()
	return out
}

// examinePeer asks twice: the first question may have to make the connection.
func (c *Cluster) examinePeer(ctx context.Context, p *adminapi.CheckupPeer) {
	for range 2 {
		begun := time.Now()
		s, err := c.Ask(ctx, node.ID(p.Node))
		if err != nil {
			p.Error = peerrpc.Reason(err)
			return
		}
		took := time.Since(begun)
		p.RoundTrip = took.Seconds()
		if !s.Now.IsZero() {
			skew := s.Now.Sub(begun.Add(took / 2)).Seconds()
			p.Skew = &skew
		}
	}
}
