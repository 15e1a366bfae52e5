package daemon

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/fsync/unshare"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
)

const pathMigrate = "/v1/migrate"

const (
	maxMigrate        = 4 << 20
	maxMigrateRequest = 4 << 10
	// migrateAnswer bounds the word of a node; a plan counts what is on the share.
	migrateAnswer = 5 * time.Second
	planAnswer    = 90 * time.Second
)

// Migration implements admin.Migrator.
func (d *Daemon) Migration(ctx context.Context, plan bool, to string) (adminapi.Migration, error) {
	m := d.current()
	if m == nil {
		return adminapi.Migration{}, d.errNoMember()
	}
	if m.svc == nil {
		return adminapi.Migration{}, adminapi.Errorf(adminapi.CodeInvalid, "ask on a node that has a salt-master", "a witness shares no file system")
	}
	return m.migration(ctx, plan, to), nil
}

func (m *member) migration(ctx context.Context, plan bool, to string) adminapi.Migration {
	within := migrateAnswer
	if plan {
		within = planAnswer
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	out := adminapi.Migration{From: string(m.d.id), Missing: map[string]string{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, id := range append(m.otherMasters(), m.d.id) {
		wg.Go(func() {
			n, err := m.migrationOf(ctx, id, plan, to)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				out.Missing[string(id)] = peerrpc.Reason(err)
				return
			}
			out.Nodes = append(out.Nodes, n)
		})
	}
	wg.Wait()
	slices.SortFunc(out.Nodes, func(a, b adminapi.MigrateNode) int { return strings.Compare(a.Node, b.Node) })
	return out
}

// migrationQuestion asks a node how far its migration is or, with plan, what a migration to a directory would do.
type migrationQuestion struct {
	plan bool
	to   string
}

var (
	migrationRPC = peerrpc.Endpoint[migrationQuestion, adminapi.MigrateNode]{
		Method: http.MethodGet, Path: pathMigrate, MaxAnswer: maxMigrate,
		Encode: func(q migrationQuestion) url.Values {
			if !q.plan {
				return nil
			}
			return url.Values{"plan": {"1"}, "to": {q.to}}
		},
		Decode: func(v url.Values) (migrationQuestion, error) {
			return migrationQuestion{v.Get("plan") != "", v.Get("to")}, nil
		},
	}
	migrateRPC = peerrpc.Endpoint[adminapi.MigrateRequest, migrateReply]{
		Method: http.MethodPost, Path: pathMigrate, MaxQuestion: maxMigrateRequest, MaxAnswer: maxMigrate,
	}
)

func (m *member) migrationOf(ctx context.Context, id node.ID, plan bool, to string) (n adminapi.MigrateNode, err error) {
	if id == m.d.id {
		return m.svc.migrateNode(ctx, plan, to), nil
	}
	return migrationRPC.Call(ctx, m.client(), id, migrationQuestion{plan, to})
}

// Migrate implements admin.Migrator.
func (d *Daemon) Migrate(ctx context.Context, r adminapi.MigrateRequest) (n adminapi.MigrateNode, err error) {
	m := d.current()
	if m == nil {
		return n, d.errNoMember()
	}
	id, err := m.findMaster(r.Node)
	switch {
	case err != nil:
		return n, err
	case m.svc == nil && id == d.id:
		return n, adminapi.Errorf(adminapi.CodeInvalid, "", "a witness shares no file system")
	case id == d.id:
		return m.svc.migrate(ctx, r)
	}
	r.Node = ""
	ctx, cancel := context.WithTimeout(ctx, migrateAnswer)
	defer cancel()
	answer, err := migrateRPC.Call(ctx, m.client(), id, r)
	if err != nil {
		return n, err
	}
	if answer.Error != nil {
		return n, answer.Error
	}
	return answer.Node, nil
}

// migrateReply is what a node answers to a step.
type migrateReply struct {
	Node  adminapi.MigrateNode `json:"node"`
	Error *adminapi.Error      `json:"error,omitempty"`
}

func (m *member) reportMigration(ctx context.Context, _ node.ID, q migrationQuestion) (adminapi.MigrateNode, error) {
	return m.svc.migrateNode(ctx, q.plan, q.to), nil
}

func (m *member) migrateForPeer(ctx context.Context, _ node.ID, req adminapi.MigrateRequest) (reply migrateReply, err error) {
	if err = m.d.migration.mayCopyTo(req.To); err == nil {
		reply.Node, err = m.svc.migrate(ctx, req)
	}
	if err != nil {
		reply.Error = adminapi.Errorf(adminapi.CodeOf(err), adminapi.HintOf(err), "%v", err)
	}
	return reply, nil
}

// migrate begins a step on this node.
func (s *service) migrate(ctx context.Context, r adminapi.MigrateRequest) (adminapi.MigrateNode, error) {
	g := s.m.d.migration
	shared := s.m.d.shares()
	var do func(context.Context) error
	switch {
	case r.Step == adminapi.MigrateBack:
		do = s.switchBack
	case !shared && g.state().Stage == unshare.Switching && r.Step == adminapi.MigrateSwitch:
		do = s.finishSwitch
	case !shared:
		return adminapi.MigrateNode{}, adminapi.Errorf(adminapi.CodeRefused, "", "%s shares no file system", s.m.d.id)
	case r.Step == adminapi.MigrateStandIn:
		do = s.standIn
	case r.Step == adminapi.MigrateCopy:
		do = func(ctx context.Context) error { return s.copyShare(ctx, r.To) }
	case r.Step == adminapi.MigrateSwitch:
		do = s.switchOver
	default:
		return adminapi.MigrateNode{}, adminapi.Errorf(adminapi.CodeInvalid, "", "there is no step %q", r.Step)
	}
	if err := g.begin(s, r.Step, do); err != nil {
		return adminapi.MigrateNode{}, err
	}
	return s.migrateNode(ctx, false, ""), nil
}

// migrateNode describes how far this node is.
func (s *service) migrateNode(ctx context.Context, plan bool, to string) adminapi.MigrateNode {
	d, g := s.m.d, s.m.d.migration
	n := g.describe(d.shares())
	n.Node = string(d.id)
	n.Behind = s.behindCluster(ctx)
	if report := d.checks.Report(health.ScopeReady); n.Behind == "" && !report.OK {
		n.Behind = "it is not ready"
	}
	n.Caught = n.Behind == ""
	st := g.state()
	switch {
	case d.shares() && plan && st.Stage == unshare.Shared:
		p := g.plan(to)
		st.Plan = &p
	case st.Plan == nil:
		return n
	}
	n.Notes, n.Refused = st.Plan.Notes, st.Plan.Refused
	var sizes []unshare.Size
	for _, t := range st.Plan.Trees {
		var size unshare.Size
		if plan {
			size, _ = unshare.Measure(ctx, t.From) // what cannot be counted will not be copied either, and say so
		}
		sizes = append(sizes, size)
		n.Trees = append(n.Trees, adminapi.MigrateTree{Name: t.Name, From: t.From, To: t.To, Files: size.Files, Bytes: size.Bytes})
	}
	if plan && d.shares() && len(n.Refused) == 0 {
		n.Steps = g.planSteps(*st.Plan, to, sizes)
	}
	return n
}

// describe is what is known without a look at the disk.
func (g *migration) describe(shared bool) adminapi.MigrateNode {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := adminapi.MigrateNode{
		Shared: shared, Stage: string(g.st.Stage), StandIn: g.st.StandIn && shared, Busy: g.busy, Doing: g.doing, ByHand: g.byHand, Switched: g.st.Switched,
		Copied: adminapi.MigrateCopied{Files: g.st.Copied.Files, Bytes: g.st.Copied.Bytes, Copied: g.st.Copied.Copied},
	}
	switch {
	case g.st.Stage == unshare.Shared && shared:
		n.Stage = "shared"
	case g.st.Stage == unshare.Shared:
		n.Stage = string(unshare.Isolated)
	case g.st.Stage == unshare.Isolated && shared: // somebody has set the option by hand again
		n.Stage = "shared"
	}
	switch {
	case g.broken != nil:
		n.Error = g.broken.Error()
	case g.err != nil:
		n.Error = g.err.Error()
	}
	return n
}
