package daemon

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/ring"
	"saltclusterd/sidecar/router"
)

// routes is who may take a request now (sidecar.Config.View).
func (m *member) routes() router.View { return *m.view.Load() }

// metaEvery is how often this node looks whether it has something new to tell about itself.
const metaEvery = time.Second

// watchRoutes keeps the view of who may take requests up to date with roster and gossip, and the others' view of this
// node with what it is doing.
func (m *member) watchRoutes(ctx context.Context) {
	if !m.took.IsZero() {
		m.awaitPeers(ctx)
	}
	roster, there := m.cons.Watch(ctx), m.gossip.Watch(ctx)
	look := time.NewTicker(metaEvery)
	defer look.Stop()
	var told node.Meta
	for {
		if now := m.meta(); now != told {
			told = now
			m.gossip.UpdateMeta()
		}
		m.updateRoutes()
		select {
		case <-look.C:
		case <-m.reroute:
		case <-ctx.Done():
			return
		case _, ok := <-roster:
			if !ok {
				return
			}
		case <-there:
		}
	}
}

// lookAtRoutes has watchRoutes look at once.
func (m *member) lookAtRoutes() {
	select {
	case m.reroute <- struct{}{}:
	default:
	}
}

// updateRoutes makes the view anew. Requests that wait for a master are told when it is another one.
func (m *member) updateRoutes() {
	m.viewing.Lock()
	defer m.viewing.Unlock()
	v := &router.View{Self: m.d.id}
	if m.svc != nil {
		v.Jobs, v.Relaying = m.svc.jobs, m.svc.relay.InFlight
		v.Events, v.Leader = m.svc.eventRules, m.cons.Status().Leader
		v.Pusher = m.pusher()
	}
	for _, mem := range m.cons.View().Members() {
		if !mem.Witness {
			v.Nodes = append(v.Nodes, m.routeNode(mem))
		}
	}
	old := m.view.Swap(v)
	if m.svc != nil && !slices.EqualFunc(old.Nodes, v.Nodes, sameButLoad) {
		m.svc.proxy.NotifyMasters()
	}
}

// sameButLoad says whether as much can be asked of a node as before.
func sameButLoad(a, b router.Node) bool {
	a.Load = b.Load
	return a == b
}

func (m *member) routeNode(mem state.Member) router.Node {
	n := router.Node{ID: mem.ID, Weight: mem.Weight, Draining: mem.Draining}
	meta := m.meta()
	n.Alive = true
	if mem.ID != m.d.id {
		g, ok := m.gossip.Member(mem.ID)
		n.Alive = ok && g.State == gossip.Alive && g.Meta.Ready
		meta = g.Meta
	}
	n.MasterUp, n.TakesReturns, n.TakesMines = meta.MasterUp, meta.Returns, meta.Mines
	n.CachesPillars = meta.PillarCache
	n.Draining = n.Draining || meta.Draining
	n.Major = majorVersion(meta.Salt)
	n.Load = int(meta.Work)
	return n
}

// majorVersion reads 3008 from "3008.3", 0 from anything else.
func majorVersion(salt string) int {
	major, _, _ := strings.Cut(salt, ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		return 0
	}
	return n
}

// meta is what this node tells the others about itself.
func (m *member) meta() node.Meta {
	if m.svc == nil {
		return node.Meta{Build: m.d.version, Proto: protoVersion, Ready: m.cons.CaughtUp(), Witness: true, Roots: true, Level: state.Level}
	}
	return node.Meta{
		Build: m.d.version, Salt: m.d.master.Version.String(), Proto: protoVersion,
		Ready: m.svc.serving.Load(), MasterUp: m.svc.masterServes(), Draining: m.svc.drain.Draining(),
		Returns: m.svc.takesReturns(), Mines: m.svc.takesMines(), PillarCache: m.d.master.Bool("pillar_cache"), Roots: true, Level: state.Level,
		Subscribers: uint32(m.svc.pub.Stats().Subscribers), Work: m.svc.work(),
	}
}

// protoVersion is the newest version of the peer RPC that this build speaks.
const protoVersion = 1

// ringNodes lists the candidates of the ring.
func (m *member) ringNodes() []ring.Node {
	var out []ring.Node
	for _, n := range m.routes().Nodes {
		if n.Usable() {
			out = append(out, ring.Node{ID: n.ID, Weight: n.Weight, Draining: n.Draining})
		}
	}
	return out
}
