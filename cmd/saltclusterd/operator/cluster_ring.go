package operator

import (
	"slices"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/ring"
)

// ringInfo reports which node is responsible for what.
func (c *Cluster) ringInfo(q adminapi.RingQuery) adminapi.RingInfo {
	var info adminapi.RingInfo
	usable := c.cfg.Usable()
	shares := ring.Shares(usable)
	st := c.cfg.Log.Status()
	for _, m := range c.cfg.Log.View().Members() {
		if m.Witness {
			continue
		}
		info.Nodes = append(info.Nodes, adminapi.RingNode{
			ID: string(m.ID), State: c.Row(m, st).State, Weight: float64(m.Weight), Share: shares[m.ID], Draining: m.Draining,
		})
	}
	switch {
	case q.Minion != "":
		info.Owner = newOwner(adminapi.KeyMinion, q.Minion, ring.Ranked(q.Minion, usable))
	case q.JID != "":
		ranked := ring.Ranked(q.JID, usable)
		info.Owner = newOwner(adminapi.KeyJID, q.JID, ranked)
		if id, ok := c.cfg.Publisher(q.JID); ok {
			ranked = slices.DeleteFunc(ranked, func(other node.ID) bool { return other == id })
			info.Owner = newOwner(adminapi.KeyJID, q.JID, append([]node.ID{id}, ranked...))
			info.Owner.By = adminapi.OwnerByPublisher
		}
	}
	return info
}

func newOwner(kind, key string, ranked []node.ID) *adminapi.RingOwner {
	o := &adminapi.RingOwner{Kind: kind, Key: key, By: adminapi.OwnerByRing}
	for i, id := range ranked {
		if i == 0 {
			o.Node = string(id)
			continue
		}
		o.Next = append(o.Next, string(id))
	}
	return o
}
