package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"syscall"
	"time"

	"saltclusterd/cmd/saltclusterd/masterlink"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/upstream"
)

// fillStatus adds what a member knows to the status of its node.
func (m *member) fillStatus(ctx context.Context, st *adminapi.Status) {
	cons := m.cons.Status()
	v := m.cons.View()
	stats := m.allStats(ctx, v.Members())
	members := m.rows(v.Members(), stats)
	st.Members = members
	st.Cluster = &adminapi.Cluster{
		ID: m.seed.ClusterID, UUID: m.seed.UUID, Leader: string(cons.Leader), Term: cons.Term,
		Epoch: v.Epochs().Current.N, IdentityFingerprint: saltcrypt.Fingerprint(m.public),
		Quorum: quorum(members, cons.Voters, cons.HasQuorum),
	}
	st.Cluster.Generation, st.Cluster.Rev = v.Generation(), v.Rev()
	for _, id := range cons.Voters {
		st.Cluster.VoterIDs = append(st.Cluster.VoterIDs, string(id))
	}
	for _, mem := range members {
		switch {
		case mem.State == adminapi.StateFailed || mem.State == adminapi.StateLeft:
			hint := "start saltclusterd there (without it salt on that host reaches no minion), or check the network on the peer port"
			if cons.HasQuorum { // else nobody can be removed
				hint += "; gone for good: saltclusterctl remove " + mem.ID
			}
			st.Problems = append(st.Problems, adminapi.Problem{
				Level: adminapi.LevelFail, Node: mem.ID, Message: "does not answer", Hint: hint,
			})
		case mem.Draining && mem.Self: // its health says so
		case mem.Draining:
			st.Problems = append(st.Problems, adminapi.Problem{
				Level: adminapi.LevelWarn, Node: mem.ID, Message: "is drained, or being drained: it takes no minions",
				Hint: "when its work is done: saltclusterctl undrain " + mem.ID,
			})
		case !mem.Self && len(mem.Health) > 0:
			st.Problems = append(st.Problems, m.elsewhere(mem)...)
		case !mem.Self && mem.Ready != nil && !*mem.Ready:
			st.Problems = append(st.Problems, adminapi.Problem{
				Level: adminapi.LevelWarn, Node: mem.ID, Message: notReady(mem),
				Hint: "saltclusterctl status on that node says why",
			})
		}
	}
	st.Problems = append(st.Problems, m.clockProblems()...)
	st.Problems = append(st.Problems, m.admission.SecretProblems()...)
	st.Problems = append(st.Problems, m.identityProblems()...)
	st.Problems = append(st.Problems, m.rivalProblems()...)
	st.Problems = append(st.Problems, ownProblems(stats)...)
	if m.svc != nil {
		m.svc.fillNode(&st.Node)
		st.Problems = append(st.Problems, twinProblems(m.svc.said.Twins())...)
	}
	st.Node.Sync = m.syncReport()
}

// elsewhere is what another node finds fault with, a warning here: this one is not the worse for it. Its clock this node
// judges itself, as soon as it has read it: the other one may have nothing to compare its own with.
func (m *member) elsewhere(mem adminapi.Member) (out []adminapi.Problem) {
	for _, r := range mem.Health {
		if r.Check == checkNameClock && m.clockRead(node.ID(mem.ID)) {
			continue
		}
		out = append(out, adminapi.Problem{Level: adminapi.LevelWarn, Node: mem.ID, Message: r.Message, Hint: r.Hint})
	}
	return out
}

// notReady says of another node that it is not, and what it lacks.
func notReady(mem adminapi.Member) string {
	text := "is not ready"
	if syncing := adminapi.SyncText(mem.Sync); syncing != "" {
		text += ": catching up with " + syncing
	}
	return text
}

func quorum(members []adminapi.Member, voters []node.ID, ok bool) adminapi.Quorum {
	q := adminapi.Quorum{OK: ok}
	for _, mem := range members {
		if !slices.Contains(voters, node.ID(mem.ID)) {
			continue
		}
		q.Voters++
		if mem.State == adminapi.StateAlive {
			q.Alive++
		}
	}
	q.Need = q.Voters/2 + 1
	return q
}

// fillNode describes edges and upstream.
func (s *service) fillNode(n *adminapi.Node) {
	pub, req := s.pub.Stats(), s.reqs.Stats()
	if s.opened.Load() {
		n.Edges = []adminapi.Edge{
			{Name: "pub", Addresses: texts(s.pub.Addr()), Connections: pub.Subscribers, Cut: pub.Cut},
			{Name: "req", Addresses: texts(s.reqs.Addr()), Connections: req.Conns, InFlight: req.InFlight},
		}
	}
	up := s.req.Stats()
	signedIn, err := s.intake.State()
	n.Upstream = adminapi.Upstream{
		Address: s.m.d.master.ReqAddr(), Up: up.Up, Subscribed: s.sub.Up(), SignedIn: signedIn,
		Connections: up.Conns, Queued: up.Waiting,
	}
	if err != nil && !s.arriving(up, err) {
		n.Upstream.Error = signInProblem(err)
	}
	n.Returns = s.native.ReturnsStatus()
	n.Wall = masterlink.WallLine(s.wall.Found())
	n.Files = s.native.FilesStatus()
	n.Roots = s.roots.Line()
	n.Jobs = masterlink.JobsLine(s.cache.Status())
	n.KeyStore = s.m.d.keyStore().Line(s.dir.Store())
}

// unreached says that the latest try to sign in met no salt-master: where there is one now, the next one is under way.
func unreached(err error) bool {
	return err == nil || errors.Is(err, upstream.ErrDown) || errors.Is(err, upstream.ErrLost)
}

// signInSoon is how long a sign-in is said to be about to come.
const signInSoon = 30 * time.Second

// arriving says that there is a salt-master which has just come up, so that a try that met none says nothing about it.
func (s *service) arriving(up upstream.ReqStats, err error) bool {
	return arriving(up, s.intake.FailingSince(), err, time.Now())
}

// arriving counts from what comes later of both: a salt-master that drops whoever signs in is up all the while, and one that
// was restarted unseen has just begun to fail.
func arriving(up upstream.ReqStats, failing time.Time, err error, now time.Time) bool {
	from := up.Since
	if failing.After(from) {
		from = failing
	}
	return up.Up && unreached(err) && now.Sub(from) < signInSoon
}

// signInProblem says why saltclusterd, which signs in at its salt-master as a minion would, could not. The log has the error itself.
func signInProblem(err error) string {
	if err == nil {
		return "it has not tried yet"
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok && errors.Is(err, upstream.ErrDown) {
		return errno.Error()
	}
	for _, c := range []struct {
		is   error
		text string
	}{
		{sidecar.ErrForeignIdentity, "it still presents its old master.pub"},
		{localmaster.ErrStaleIdentity, "it still signs with an older key than it has stored"},
		{localmaster.ErrHiddenPending, "it holds saltclusterd's own key as pending"},
		{localmaster.ErrHiddenRejected, "it refuses saltclusterd's own key"},
		{localmaster.ErrHiddenFull, "its max_minions leaves no room for saltclusterd"},
		{localmaster.ErrHiddenReply, "its answer to a sign-in is not a salt-master's"},
		{upstream.ErrDown, "nothing answers there"},
		{upstream.ErrLost, "it closed the connection"},
		{upstream.ErrBusy, "it does not answer as fast as minions ask"},
		{context.DeadlineExceeded, "it did not answer in time"},
	} {
		if errors.Is(err, c.is) {
			return c.text
		}
	}
	return err.Error()
}

func texts(addrs []net.Addr) []string {
	out := make([]string, 0, len(addrs))
	for _, a := range addrs {
		out = append(out, a.String())
	}
	return out
}

// masterServes says whether the local master can take requests of minions.
func (s *service) masterServes() bool {
	signedIn, _ := s.intake.State()
	return s.req.Up() && signedIn && !s.share.Hangs() && !s.m.d.migration.MasterOutdated()
}

// downProblem says what to do about a master that is not there. Perhaps it does not start with what it finds in its files.
func (s *service) downProblem() string {
	d := s.m.d
	if _, err := localmaster.LoadConfig(d.cfg.Salt.Config, d.master.Version); err != nil && !errors.Is(err, fs.ErrPermission) {
		return fmt.Sprintf("mend the salt-master's configuration, it does not start with it: %v; then: systemctl start salt-master", err)
	}
	return fmt.Sprintf("start the salt-master (systemctl start salt-master), or wait while it starts: nothing answers at %s", d.master.ReqAddr())
}

// masterProblem says what is wrong with the local master and what to do, empty when nothing is.
func (s *service) masterProblem(context.Context) string {
	signedIn, err := s.intake.State()
	switch {
	case s.req.Stats().Stalled == upstream.Silent:
		return fmt.Sprintf("look at the salt-master (systemctl status salt-master): it is there, but stands still (stopped?); nothing comes from %s", s.m.d.master.ReqAddr())
	case s.req.Stats().Stalled == upstream.Stuck:
		return fmt.Sprintf("look at the salt-master (systemctl status salt-master): none of its workers at %s answers (hung on a pillar or disk?)", s.m.d.master.ReqAddr())
	case !s.req.Up():
		return s.downProblem()
	case errors.Is(err, sidecar.ErrForeignIdentity):
		return "restart the salt-master: it still presents its old master.pub (systemctl restart salt-master)"
	case errors.Is(err, localmaster.ErrStaleIdentity):
		return "restart the salt-master: it still signs with an older key than it has stored (systemctl restart salt-master)"
	case !signedIn && s.arriving(s.req.Stats(), err):
		return fmt.Sprintf("wait: the salt-master at %s has come up, and saltclusterd is about to sign in at it; it takes seconds", s.m.d.master.ReqAddr())
	case !signedIn:
		return fmt.Sprintf("the salt-master at %s does not let saltclusterd sign in: %s", s.m.d.master.ReqAddr(), signInProblem(err))
	case !s.sub.Up():
		return fmt.Sprintf("the salt-master does not publish at %s", s.m.d.master.PubAddr())
	}
	return ""
}
