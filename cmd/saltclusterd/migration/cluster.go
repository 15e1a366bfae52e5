package migration

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// Path is where members ask each other about migrations and have each other begin steps.
const Path = "/v1/migrate"

const (
	maxQuestion = 4 << 10
	maxAnswer   = 4 << 20
	maxAtOnce   = 8 // questions of one member
	// A plan counts what is on the share, and may take longer.
	answerTimeout     = 5 * time.Second
	planAnswerTimeout = 90 * time.Second
)

// question asks a node how far its migration is or, with plan, what a migration to a directory would do.
type question struct {
	plan bool
	to   string
}

// stepReply is what a node answers to a step.
type stepReply struct {
	Node  adminapi.MigrateNode `json:"node"`
	Error *adminapi.Error      `json:"error,omitempty"`
}

var (
	reportRPC = peerrpc.Endpoint[question, adminapi.MigrateNode]{
		Method: http.MethodGet, Path: Path, MaxAnswer: maxAnswer,
		Encode: func(q question) url.Values {
			if !q.plan {
				return nil
			}
			return url.Values{"plan": {"1"}, "to": {q.to}}
		},
		Decode: func(v url.Values) (question, error) { return question{v.Get("plan") != "", v.Get("to")}, nil },
	}
	stepRPC = peerrpc.Endpoint[adminapi.MigrateRequest, stepReply]{
		Method: http.MethodPost, Path: Path, MaxQuestion: maxQuestion, MaxAnswer: maxAnswer,
	}
)

// Handle routes what members ask of this node.
func (s *Steps) Handle(mux *peerrpc.Mux) {
	mux.Handle(reportRPC.Pattern(), reportRPC.Handler(s.reportForPeer))
	mux.Handle(stepRPC.Pattern(), stepRPC.Handler(s.beginForPeer))
	mux.Limit(Path, maxAtOnce)
}

// reportForPeer answers a question of another node.
func (s *Steps) reportForPeer(ctx context.Context, _ node.ID, q question) (adminapi.MigrateNode, error) {
	return s.Report(ctx, q.plan, q.to), nil
}

// beginForPeer begins a step that another node asks for.
func (s *Steps) beginForPeer(ctx context.Context, _ node.ID, r adminapi.MigrateRequest) (reply stepReply, err error) {
	if err = s.c.Host.checkPeerDir(r.To); err == nil {
		reply.Node, err = s.Begin(ctx, r)
	}
	if err != nil {
		reply.Error = adminapi.Errorf(adminapi.CodeOf(err), adminapi.HintOf(err), "%v", err)
	}
	return reply, nil
}

// Peers are the other members that have a master.
type Peers struct {
	List   func() []node.ID
	Client peerrpc.Client
}

// standIn says whether one of them replicates the share.
func (p Peers) standIn(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	answers := peerrpc.AskAll(ctx, p.List(), func(ctx context.Context, id node.ID) (adminapi.MigrateNode, error) {
		return reportRPC.Call(ctx, p.Client, id, question{})
	})
	for _, n := range answers.Of {
		if n.StandIn && n.Shared {
			return true
		}
	}
	return false
}

// Cluster asks the members of a cluster about their migrations.
type Cluster struct {
	Self  node.ID
	Peers Peers
	Find  func(name string) (node.ID, error) // the member an operator means; this node when the name is empty
	Steps *Steps                             // of this node; nil: it is a witness
}

// Verbs implements admin.Migrator.
type Verbs struct {
	Of func() (*Cluster, error) // an error on a node without a cluster
}

// Migration implements admin.Migrator.
func (v Verbs) Migration(ctx context.Context, plan bool, to string) (adminapi.Migration, error) {
	c, err := v.Of()
	if err != nil {
		return adminapi.Migration{}, err
	}
	if c.Steps == nil {
		return adminapi.Migration{}, adminapi.Errorf(adminapi.CodeInvalid,
			"ask on a node that has a salt-master", "a witness shares no file system")
	}
	return c.report(ctx, plan, to), nil
}

// report asks all nodes with a master how far they are.
func (c *Cluster) report(ctx context.Context, plan bool, to string) adminapi.Migration {
	timeout := answerTimeout
	if plan {
		timeout = planAnswerTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ask := func(ctx context.Context, id node.ID) (adminapi.MigrateNode, error) {
		if id == c.Self {
			return c.Steps.Report(ctx, plan, to), nil
		}
		return reportRPC.Call(ctx, c.Peers.Client, id, question{plan, to})
	}
	answers := peerrpc.AskAll(ctx, append(c.Peers.List(), c.Self), ask)
	out := adminapi.Migration{From: string(c.Self), Missing: map[string]string{}}
	for id, err := range answers.Failed {
		out.Missing[string(id)] = peerrpc.Reason(err)
	}
	out.Nodes = slices.SortedFunc(maps.Values(answers.Of), func(a, b adminapi.MigrateNode) int {
		return cmp.Compare(a.Node, b.Node)
	})
	return out
}

// Migrate implements admin.Migrator.
func (v Verbs) Migrate(ctx context.Context, r adminapi.MigrateRequest) (n adminapi.MigrateNode, err error) {
	c, err := v.Of()
	if err != nil {
		return n, err
	}
	id, err := c.Find(r.Node)
	switch {
	case err != nil:
		return n, err
	case id == c.Self && c.Steps == nil:
		return n, adminapi.Errorf(adminapi.CodeInvalid, "", "a witness shares no file system")
	case id == c.Self:
		return c.Steps.Begin(ctx, r)
	}
	r.Node = ""
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	reply, err := stepRPC.Call(ctx, c.Peers.Client, id, r)
	if err != nil {
		return n, err
	}
	if reply.Error != nil {
		return n, reply.Error
	}
	return reply.Node, nil
}
