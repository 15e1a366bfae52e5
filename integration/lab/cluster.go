package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/sidecar/adminapi"
)

// Timeouts of the steps below: two slow cores shared with others must be enough.
const (
	startWithin = 180 * time.Second
	keysWithin  = 240 * time.Second
)

// ClusterSpec says what a Cluster is made of.
type ClusterSpec struct {
	Masters []string // Salt versions; hosts m1, m2, …
	Minions []string // Salt versions; ids min06-1, min06-2, min07-1, …
	Shared  bool     // the masters have pki_dir, roots and jobs on one share (Cluster.Share)
	// ShareMounts: each host reaches the share through a file system of its own, which can hang alone.
	ShareMounts bool
	Disk        int      // MiB of a disk of its own for each master's host; 0: none
	Seams       SeamKind // of each saltclusterd

	MasterSettings, MinionSettings, DaemonSettings Settings

	LB        LBOptions
	LBPerPort bool // a HAProxy for each port, for thousands of minions
}

// DefaultCluster is one master and two minions of each version.
func DefaultCluster() ClusterSpec {
	s := ClusterSpec{Masters: Versions}
	for _, v := range Versions {
		s.Minions = append(s.Minions, v, v)
	}
	return s
}

// Node is a master with its saltclusterd.
type Node struct {
	*Host
	Master *Master
	Daemon *Daemon
}

// Cluster is masters with saltclusterd on m1, m2, …, HAProxy on lb, and minions on min that know only lb.
type Cluster struct {
	Lab     *Lab
	Nodes   []*Node
	LB      *HAProxy
	LBPub   *HAProxy // with ClusterSpec.LBPerPort that of 4505; else nil
	Minions []*Minion
	Share   *Share // nil: every master has a file system of its own
}

// NewCluster lays everything out and starts nothing; Up does.
func (l *Lab) NewCluster(ctx context.Context, s ClusterSpec) (*Cluster, error) {
	c := &Cluster{Lab: l}
	var hosts []*Host
	if s.Shared {
		share, err := l.NewShare(ctx, s.ShareMounts)
		if err != nil {
			return nil, err
		}
		c.Share = share
	}
	for i, v := range s.Masters {
		n, err := l.newNode(ctx, fmt.Sprint("m", i+1), v, s, c.Share)
		if err != nil {
			return nil, err
		}
		c.Nodes, hosts = append(c.Nodes, n), append(hosts, n.Host)
	}
	lb, err := l.Host(ctx, "lb")
	if err != nil {
		return nil, err
	}
	if s.LBPerPort {
		c.LBPub, c.LB, err = lb.NewHAProxies(s.LB, hosts...)
	} else {
		c.LB, err = lb.NewHAProxy(s.LB, hosts...)
	}
	if err != nil {
		return nil, err
	}
	c.Minions, err = l.newMinions(ctx, lb.Addr, s.Minions, s.MinionSettings)
	return c, err
}

func (l *Lab) newNode(ctx context.Context, name, version string, s ClusterSpec, share *Share) (*Node, error) {
	h, err := l.Host(ctx, name)
	if err != nil {
		return nil, err
	}
	if s.Disk > 0 {
		if err := h.UseDisk(ctx, s.Disk); err != nil {
			return nil, err
		}
	}
	n := &Node{Host: h}
	if n.Master, err = h.NewMaster(version, h.Local, s.MasterSettings); err != nil {
		return nil, err
	}
	var over Settings
	if share != nil {
		settings, err := share.give(ctx, n.Master)
		if err != nil {
			return nil, err
		}
		if err := n.Master.Configure(s.MasterSettings, settings); err != nil {
			return nil, err
		}
		over = Settings{"cluster_isolated_filesystem": false}
	}
	if n.Daemon, err = n.Master.NewDaemon(s.DaemonSettings, over); err != nil || s.Seams == 0 {
		return n, err
	}
	return n, n.Daemon.GiveSeams(s.Seams)
}

// newMinions lays out minions on the host min, named after their versions.
func (l *Lab) newMinions(ctx context.Context, master string, versions []string, over Settings) ([]*Minion, error) {
	h, err := l.Host(ctx, "min")
	if err != nil {
		return nil, err
	}
	count := map[string]int{}
	var all []*Minion
	for _, v := range versions {
		line := v[2:4]
		count[line]++
		m, err := h.NewMinion(v, fmt.Sprintf("min%s-%d", line, count[line]), master, over)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// Up does all that is needed until every minion answers: Form, StartEdge, AcceptKeys, Answering from every node.
func (c *Cluster) Up(ctx context.Context) error {
	for _, step := range []func(context.Context) error{c.Form, c.StartEdge, c.AcceptKeys} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, n := range c.Nodes {
		g.Go(func() error { return c.Answering(gctx, n) })
	}
	return g.Wait()
}

// Form makes one cluster of the nodes: the first is an existing single master that founds it, the others join and their
// masters start for the first time with the cluster's identity.
func (c *Cluster) Form(ctx context.Context) error {
	if err := c.foundation(ctx); err != nil {
		return err
	}
	for i, n := range c.Nodes[1:] {
		peer := c.Nodes[i] // the founder leads: all but the first know one that does not
		if err := Eventually(ctx, startWithin, peer.Name+" to know who belongs", c.knows(peer, i+1)); err != nil {
			return err
		}
		c.Lab.Logf("%s joins %s", n.Name, peer.Name)
		if err := n.Daemon.Join(ctx, peer.Daemon); err != nil {
			return fmt.Errorf("join %s: %w\n%s", n.Name, err, n.Daemon.Tail(15))
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, n := range c.Nodes {
		g.Go(func() error {
			if !n.Master.Running() {
				c.Lab.Logf("start Salt %s on %s (%s)", n.Master.Version, n.Name, n.Addr)
				if err := n.Master.Start(gctx); err != nil {
					return err
				}
			}
			return errors.Join(n.Master.WaitReady(gctx, startWithin), n.Daemon.Serving(gctx, startWithin))
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return c.Whole(ctx, startWithin)
}

// knows says whether a node sees so many members.
func (c *Cluster) knows(n *Node, members int) func(context.Context) error {
	return func(ctx context.Context) error {
		all, err := n.Daemon.Members(ctx)
		if err == nil && len(all.Members) < members {
			err = fmt.Errorf("%d of %d", len(all.Members), members)
		}
		return err
	}
}

// Whole waits until every node sees all nodes alive, ready voters.
func (c *Cluster) Whole(ctx context.Context, within time.Duration) error {
	for _, n := range c.Nodes {
		err := Eventually(ctx, within, n.Name+" to see the whole cluster", func(ctx context.Context) error {
			return c.Sees(ctx, n)
		})
		if err != nil {
			return fmt.Errorf("%w\n%s", err, n.Daemon.Tail(15))
		}
	}
	return nil
}

// Sees returns nil when the node sees all nodes alive, ready voters. For one of the checks in despite alone a node may
// be not ready.
func (c *Cluster) Sees(ctx context.Context, n *Node, despite ...string) error {
	all, err := n.Daemon.Members(ctx)
	if err != nil {
		return err
	}
	if len(all.Members) != len(c.Nodes) {
		return fmt.Errorf("%d members instead of %d", len(all.Members), len(c.Nodes))
	}
	for _, m := range all.Members {
		ready := m.Ready != nil && (*m.Ready || len(m.Reasons) == 1 && slices.Contains(despite, m.Reasons[0]))
		if m.State != adminapi.StateAlive || m.Role != adminapi.RoleVoter || !ready {
			return fmt.Errorf("%s is %s, %s, not ready because of %v", m.ID, m.Role, m.State, m.Reasons)
		}
	}
	return nil
}

// foundation starts the first master and all daemons, and founds the cluster.
func (c *Cluster) foundation(ctx context.Context) error {
	first := c.Nodes[0]
	c.Lab.Logf("start Salt %s on %s (%s)", first.Master.Version, first.Name, first.Addr)
	if err := first.Master.Start(ctx); err != nil {
		return err
	}
	for _, n := range c.Nodes {
		if err := n.Daemon.Start(ctx); err != nil {
			return err
		}
	}
	for _, n := range c.Nodes {
		if err := n.Daemon.WaitReady(ctx, startWithin); err != nil {
			return err
		}
	}
	if err := first.Master.WaitReady(ctx, startWithin); err != nil {
		return err
	}
	c.Lab.Logf("%s founds the cluster", first.Name)
	if err := first.Daemon.Bootstrap(ctx); err != nil {
		return fmt.Errorf("bootstrap: %w\n%s", err, first.Daemon.Tail(15))
	}
	return nil
}

// StartEdge starts HAProxy and all minions.
func (c *Cluster) StartEdge(ctx context.Context) error {
	c.Lab.Logf("start HAProxy on lb (%s) and %d minions", c.LB.Host().Addr, len(c.Minions))
	for _, p := range []*HAProxy{c.LBPub, c.LB} {
		if p == nil {
			continue
		}
		if err := p.Start(ctx); err != nil {
			return err
		}
		if err := p.WaitReady(ctx, startWithin); err != nil {
			return err
		}
	}
	for _, m := range c.Minions {
		if err := m.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// AcceptKeys accepts all minions once, with stock salt-key on the first node, and waits until every node's master has
// the keys.
func (c *Cluster) AcceptKeys(ctx context.Context) error {
	ids := c.IDs()
	c.Lab.Logf("accept %d keys with salt-key on %s", len(ids), c.Nodes[0].Name)
	if err := c.Nodes[0].Master.AcceptKeys(ctx, keysWithin, ids...); err != nil {
		return err
	}
	for _, n := range c.Nodes {
		err := Eventually(ctx, 30*time.Second, "the keys on "+n.Name, func(context.Context) error {
			for _, id := range ids {
				if !n.Master.hasKey("minions", id) {
					return fmt.Errorf("%s is not accepted", id)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// IDs of all minions.
func (c *Cluster) IDs() []string {
	var ids []string
	for _, m := range c.Minions {
		ids = append(ids, m.ID)
	}
	return ids
}

// Answering waits until all minions answer test.ping published by the node's master.
func (c *Cluster) Answering(ctx context.Context, n *Node) error {
	return Answering(ctx, n.Master, c.IDs()...)
}

// Answering waits until exactly the minions of these ids answer test.ping published by the master.
func Answering(ctx context.Context, m *Master, ids ...string) error {
	return Eventually(ctx, startWithin, fmt.Sprintf("%d minions to answer %s", len(ids), m.Host().Name),
		func(ctx context.Context) error {
			got, err := m.Pub(ctx, "*", "test.ping")
			if err != nil {
				return err
			}
			for id, v := range got {
				if v != true {
					return fmt.Errorf("%s answered %v", id, v)
				}
			}
			return AnsweredBy(got, ids...)
		})
}

// Bare is a stock master alone with its minions, the yardstick: no saltclusterd, no HAProxy.
type Bare struct {
	Lab     *Lab
	Master  *Master
	Minions []*Minion
}

// NewBare lays out a stock master on host m1, with the same roots as a Cluster's, and minions on min.
func (l *Lab) NewBare(ctx context.Context, version string, minions []string, master, minion Settings) (*Bare, error) {
	h, err := l.Host(ctx, "m1")
	if err != nil {
		return nil, err
	}
	b := &Bare{Lab: l}
	if b.Master, err = h.NewMaster(version, h.Addr, master); err != nil {
		return nil, err
	}
	b.Minions, err = l.newMinions(ctx, h.Addr, minions, minion)
	return b, err
}

// Up starts everything and waits until all minions answer.
func (b *Bare) Up(ctx context.Context) error {
	if err := b.Master.Start(ctx); err != nil {
		return err
	}
	if err := b.Master.WaitReady(ctx, startWithin); err != nil {
		return err
	}
	var ids []string
	for _, m := range b.Minions {
		if err := m.Start(ctx); err != nil {
			return err
		}
		ids = append(ids, m.ID)
	}
	if err := b.Master.AcceptKeys(ctx, keysWithin, ids...); err != nil {
		return err
	}
	return Answering(ctx, b.Master, ids...)
}
