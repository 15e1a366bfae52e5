package operator

import (
	"context"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
)

// checkTimeout bounds how long a status waits for checks when this node has come into a cluster, or out of one.
const checkTimeout = 2 * time.Second

// Checks are the health checks of this process.
type Checks interface {
	Look(ctx context.Context) // runs all checks
	Report(scope health.Scope) health.Report
}

// NodeConfig is what a Node works with. All fields must be set.
type NodeConfig struct {
	Self        node.ID
	Version     string // of saltclusterd
	Started     time.Time
	Master      func() *localmaster.Config // the local master; nil on a witness
	Options     func() adminapi.Config
	Checks      Checks
	Findings    func() []localmaster.Finding // in the configuration of the local master; not called without one
	Absence     func() Absence               // why no membership is running
	JoinProblem func() error                 // why the last attempt to join failed; nil: it did not
	Of          func() *Cluster              // of the running membership; nil: there is none
}

// Node is this process as operators see it. It implements admin.Reporter and admin.Examiner.
type Node struct {
	cfg     NodeConfig
	checked atomic.Pointer[Cluster] // the membership at the last status; the checks have run for it
}

// NewNode returns a Node.
func NewNode(cfg NodeConfig) *Node { return &Node{cfg: cfg} }

// AwaitChecks makes the next status wait for the checks.
func (n *Node) AwaitChecks() { n.checked.Store(new(Cluster)) } // neither a membership nor none

// Version implements admin.Reporter.
func (n *Node) Version(context.Context) (adminapi.Version, error) {
	return adminapi.Version{
		Node: string(n.cfg.Self), Version: n.cfg.Version, SaltVersion: n.saltVersion(), Go: runtime.Version(),
		API: adminapi.APIVersion, PID: os.Getpid(), Started: n.cfg.Started.UnixMilli(),
	}, nil
}

func (n *Node) saltVersion() string {
	if c := n.cfg.Master(); c != nil {
		return c.Version.String()
	}
	return ""
}

// Config implements admin.Reporter.
func (n *Node) Config(context.Context) (adminapi.Config, error) { return n.cfg.Options(), nil }

// Members implements admin.Reporter.
func (n *Node) Members(ctx context.Context) (adminapi.Members, error) {
	c := n.cfg.Of()
	if c == nil {
		return adminapi.Members{}, n.cfg.Absence().Err()
	}
	return adminapi.Members{ClusterID: c.cfg.ClusterID, From: string(c.cfg.Self), Members: c.Members(ctx)}, nil
}

// RingInfo implements admin.Reporter.
func (n *Node) RingInfo(_ context.Context, q adminapi.RingQuery) (adminapi.RingInfo, error) {
	c := n.cfg.Of()
	if c == nil {
		return adminapi.RingInfo{}, n.cfg.Absence().Err()
	}
	if err := q.Validate(); err != nil {
		return adminapi.RingInfo{}, err
	}
	return c.ringInfo(q), nil
}

// Checkup implements admin.Examiner.
func (n *Node) Checkup(ctx context.Context) (adminapi.Checkup, error) {
	out := adminapi.Checkup{
		Node: string(n.cfg.Self), PID: os.Getpid(), UID: os.Geteuid(), GID: os.Getegid(), Peers: []adminapi.CheckupPeer{},
	}
	if c := n.cfg.Master(); c != nil {
		out.Master = &adminapi.CheckupMaster{
			Version: c.Version.String(), User: c.User, PKIDir: c.PkiDir, CacheDir: c.CacheDir, SockDir: c.SockDir,
			Interface: c.Interface, PublishPort: c.PublishPort, RetPort: c.RetPort,
		}
	}
	if c := n.cfg.Of(); c != nil {
		if out.Master != nil {
			out.Master.Roots = c.cfg.RootDirs()
		}
		out.Peers = c.examinePeers(ctx)
	}
	return out, nil
}

// Status implements admin.Reporter.
func (n *Node) Status(ctx context.Context) (adminapi.Status, error) {
	st := adminapi.Status{Node: adminapi.Node{
		ID: string(n.cfg.Self), Version: n.cfg.Version, SaltVersion: n.saltVersion(), Started: n.cfg.Started,
	}}
	c := n.cfg.Of()
	n.fillHealth(ctx, c, &st)
	if c != nil {
		c.fillStatus(ctx, &st)
		return st, nil
	}
	a := n.cfg.Absence()
	st.Removed, st.Starting = a.Removed, a.Starting
	if err := n.cfg.JoinProblem(); err != nil {
		st.Problems = append(st.Problems, adminapi.Problem{
			Level: adminapi.LevelFail, Node: string(n.cfg.Self), Message: "the last attempt to join failed: " + err.Error(),
			Hint: "check cluster_peers, and that one of them is a member",
		})
	}
	return st, nil
}

// fillHealth copies the results of the checks into a status. Results about another membership, or about none, would
// contradict the rest of it: then the checks run first.
func (n *Node) fillHealth(ctx context.Context, c *Cluster, st *adminapi.Status) {
	if n.checked.Swap(c) != c {
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		defer cancel()
		n.cfg.Checks.Look(ctx)
	}
	self := string(n.cfg.Self)
	report := n.cfg.Checks.Report(health.ScopeReady)
	st.Node.Ready, st.Node.Draining = report.OK, report.Draining
	for _, f := range report.Bad() {
		level := levelOf(f.Level)
		if f.Check == health.Draining {
			switch {
			case c == nil: // of a membership that has ended
				st.Node.Draining = false
				continue
			case c.cfg.DrainWanted():
				level, f.Reason, f.Hint = adminapi.LevelWarn, "this node is drained, or being drained: it takes no minions",
					"when its work is done: saltclusterctl undrain "+self
			}
		}
		st.Node.Reasons = append(st.Node.Reasons, adminapi.Reason{
			Check: f.Check, Level: level, Message: f.Reason, Hint: f.Hint,
		})
		p := adminapi.Problem{Level: level, Node: self, Message: f.Reason, Hint: f.Hint}
		if !slices.Contains(st.Problems, p) { // the checks of a process that starts all say the same
			st.Problems = append(st.Problems, p)
		}
	}
	if n.cfg.Master() == nil {
		return
	}
	for _, f := range n.cfg.Findings() {
		level := adminapi.LevelWarn
		if f.Fatal {
			level = adminapi.LevelFail
		}
		st.Problems = append(st.Problems, adminapi.Problem{Level: level, Node: self, Message: f.Message, Hint: f.Fix})
	}
}
