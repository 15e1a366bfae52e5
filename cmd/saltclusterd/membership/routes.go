package membership

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/router"
	"saltclusterd/signal"
)

// metaEvery is how often this node checks whether it has something new to tell about itself.
const metaEvery = time.Second

// Routes is who may take a request now (sidecar.Config.View).
func (m *Member) Routes() router.View { return *m.view.Load() }

// SetRoutes puts a view in force that another process has handed over.
func (m *Member) SetRoutes(v *router.View) { m.view.Store(v) }

// FollowRoutes keeps the view of who may take requests up to date with roster and gossip, and the others' view of this
// node with what it is doing, until ctx ends.
func (m *Member) FollowRoutes(ctx context.Context) {
	roster, there := m.Consensus.Watch(ctx), m.Gossip.Watch(ctx)
	tick := time.NewTimer(backoff.Align(metaEvery))
	defer tick.Stop()
	var told node.Meta
	for {
		if now := m.cfg.Meta(); now != told {
			told = now
			m.Gossip.UpdateMeta()
		}
		m.UpdateRoutes()
		select {
		case <-tick.C:
			tick.Reset(backoff.Align(metaEvery))
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

// RequestRoutes has FollowRoutes make the view anew at once.
func (m *Member) RequestRoutes() { signal.Send(m.reroute) }

// UpdateRoutes makes the view anew.
func (m *Member) UpdateRoutes() {
	m.viewing.Lock()
	defer m.viewing.Unlock()
	v := &router.View{Self: m.cfg.Self}
	m.cfg.Complete(v)
	for _, mem := range m.Consensus.View().Members() {
		if !mem.Witness {
			v.Nodes = append(v.Nodes, m.routeNode(mem))
		}
	}
	old := m.view.Swap(v)
	if !slices.EqualFunc(old.Nodes, v.Nodes, equalButLoad) {
		m.cfg.RoutesChanged()
	}
}

// equalButLoad says whether as much can be asked of a node as before.
func equalButLoad(a, b router.Node) bool {
	a.Load = b.Load
	return a == b
}

func (m *Member) routeNode(mem state.Member) router.Node {
	n := router.Node{ID: mem.ID, Weight: mem.Weight, Draining: mem.Draining}
	meta := m.cfg.Meta()
	n.Alive = true
	if mem.ID != m.cfg.Self {
		g, ok := m.Gossip.Member(mem.ID)
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

// OtherMasters lists the other members that have a master.
func (m *Member) OtherMasters() []node.ID {
	var out []node.ID
	for _, mem := range m.Consensus.View().Members() {
		if mem.ID != m.cfg.Self && !mem.Witness {
			out = append(out, mem.ID)
		}
	}
	return out
}

// Masters lists the members that have a master, this node included.
func (m *Member) Masters() []node.ID {
	out := append(m.OtherMasters(), m.cfg.Self)
	slices.Sort(out)
	return out
}

// Sources lists the other members with a master: of those that are there the ones that serve come first, then the least
// loaded.
func (m *Member) Sources() (there, absent []node.ID) {
	for _, id := range m.OtherMasters() {
		if m.Alive(id) {
			there = append(there, id)
		} else {
			absent = append(absent, id)
		}
	}
	sortSources(there, m.Routes().Nodes)
	return there, absent
}

// sortSources sorts nodes by whom to ask first for much: those that serve, the least loaded before the others.
func sortSources(ids []node.ID, nodes []router.Node) {
	serving, load := map[node.ID]bool{}, map[node.ID]int{}
	for _, n := range nodes {
		serving[n.ID], load[n.ID] = n.Alive, n.Load
	}
	slices.SortStableFunc(ids, func(a, b node.ID) int {
		if serving[a] != serving[b] {
			if serving[a] {
				return -1
			}
			return 1
		}
		return cmp.Compare(load[a], load[b])
	})
}

// RouteSignIn says who decides about a key (signin.Config.Way). The own master is also asked when no node's is known to
// answer.
func (m *Member) RouteSignIn(id string) (here bool, others []node.ID) {
	d := m.Routes().SignIn(id)
	if d.Kind == router.ToNode {
		return false, append([]node.ID{d.Node}, d.Others...)
	}
	return true, d.Others
}
