package edge

import (
	"net/netip"
	"saltclusterd/sidecar/edge/netconn"
	"time"
)

// Subscriber is one connected subscriber, for an operator to look at. Who it is the protocol does not tell.
type Subscriber struct {
	Remote netip.AddrPort // as a load balancer in Proxies says, else as TCP does
	Since  time.Duration  // since when it is connected
	Heard  time.Duration  // since when nothing was heard of it
	Topic  string         // one that it has subscribed to, the longest: with zmq_filtering that tells minions apart
}

// Subscribers lists who is subscribed.
func (e *PubEdge) Subscribers() []Subscriber {
	now := netconn.Clock()
	out := make([]Subscriber, 0, e.subscribers.Load())
	for _, h := range e.shards {
		h.mu.Lock()
		for _, s := range h.members {
			if len(s.topics) > 0 {
				out = append(out, Subscriber{
					Remote: s.Remote(), Since: time.Duration(now - s.since), Heard: time.Duration(now - s.Heard()),
					Topic: s.topics.longest(),
				})
			}
		}
		h.mu.Unlock()
	}
	return out
}
