package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/consensus/archive"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
)

// fake is a daemon with fixed knowledge.
type fake struct {
	status adminapi.Status
	ring   adminapi.RingInfo
	config *adminapi.Config // nil: a few options

	mute         bool                 // it does not tell its version
	held         []string             // minions whose keys it has written back
	part         int                  // how many keys it lists at most; 0: all
	odd          []adminapi.MinionKey // that it lists beside the usual ones
	put          []adminapi.MinionKey // what somebody has put
	share        fakeShare
	verification adminapi.Verification
	err          error // of every reading verb
	operate      func(context.Context, admin.Progress, string) (adminapi.Outcome, error)
}

func (f *fake) Version(ctx context.Context) (adminapi.Version, error) {
	if f.mute {
		<-ctx.Done() // the client has gone, or is about to
		return adminapi.Version{}, ctx.Err()
	}
	return adminapi.Version{Node: f.status.Node.ID, Version: "0.1.0", SaltVersion: f.status.Node.SaltVersion, Go: "go1.26",
		API: 1}, f.err
}

func (f *fake) Status(context.Context) (adminapi.Status, error) { return f.status, f.err }

func (f *fake) Members(context.Context) (adminapi.Members, error) {
	return adminapi.Members{ClusterID: "salt-lab", From: f.status.Node.ID, Members: f.status.Members}, f.err
}

func (f *fake) RingInfo(_ context.Context, q adminapi.RingQuery) (adminapi.RingInfo, error) {
	info := f.ring
	switch {
	case q.Minion != "":
		info.Owner = &adminapi.RingOwner{Kind: adminapi.KeyMinion, Key: q.Minion, Node: "m2", By: adminapi.OwnerByRing,
			Next: []string{"m1"}}
	case q.JID != "":
		info.Owner = &adminapi.RingOwner{Kind: adminapi.KeyJID, Key: q.JID, Node: "m3", By: adminapi.OwnerByPublisher}
	}
	return info, f.err
}

func (f *fake) Config(context.Context) (adminapi.Config, error) {
	if f.config != nil {
		return *f.config, f.err
	}
	return adminapi.Config{Files: []string{"/etc/salt/saltclusterd"}, Options: []adminapi.ConfigOption{
		{Name: "id", Value: "m1", Source: "/etc/salt/saltclusterd:3"},
		{Name: "interface", Value: []string{"10.0.0.11", "2001:db8::11"}, Source: "/etc/salt/saltclusterd:4"},
		{Name: "cluster_secret", Value: "[redacted]", Source: "/etc/salt/saltclusterd.d/secret.conf:1"},
	}}, f.err
}

func (f *fake) Verify(context.Context) (adminapi.Verification, error) { return f.verification, f.err }

func (f *fake) Minions(context.Context) (adminapi.Minions, error) {
	return adminapi.Minions{From: f.status.Node.ID, Missing: []string{"m3"}, Subscribers: []adminapi.Subscriber{
		{Node: "m1", Remote: "192.0.2.7:4711", Since: ago(50 * time.Hour), Silent: 3}, {Node: "m2", Remote: "192.0.2.8:4712"},
	}}, f.err
}

func (f *fake) ListJobs(context.Context, int) (adminapi.JobList, error) {
	return adminapi.JobList{Missing: []string{"m3"}, Jobs: []adminapi.JobRow{
		{JID: aJob, Function: "test.ping", Target: "*", User: "root", Minions: 3, Returned: 2, Nodes: []string{"m1", "m2"}},
		{JID: "20260102030405000000", Function: "test.arg", Returned: 1, Nodes: []string{"m2"}},
	}}, f.err
}

const aJob = "20260102030405000001"

func (f *fake) ShowJob(_ context.Context, jid string) (adminapi.Job, error) {
	if jid != aJob {
		return adminapi.Job{}, adminapi.Errorf(adminapi.CodeNotFound, "", "no node knows the job: %s", jid)
	}
	return adminapi.Job{
		JID: jid, Node: "m2", Function: "test.ping", Target: "*", Arguments: []any{1, "two"},
		Minions: []any{"db1", "web1", "web2"},
		Returns: map[string]adminapi.JobReturn{
			"web1": {Return: true, Retcode: 0, Success: true}, "web2": {Return: map[string]any{"a": 1}},
		},
	}, f.err
}

func (f *fake) Bootstrap(ctx context.Context, _ adminapi.BootstrapRequest, p admin.Progress) (adminapi.Outcome, error) {
	return f.operate(ctx, p, "")
}

func (f *fake) Join(ctx context.Context, r adminapi.JoinRequest, p admin.Progress) (adminapi.Outcome, error) {
	how := "the configured secret"
	if r.Token != "" {
		how = "a token of " + string(r.Token[:4]) + "..."
	}
	if r.Secret != "" {
		how = "a secret of " + string(r.Secret[:3]) + "..." // short enough to be harmless in a test
	}
	if r.ReplaceKey || r.KeysPending {
		how += fmt.Sprintf(", replace key %t, keys pending %t", r.ReplaceKey, r.KeysPending)
	}
	return f.operate(ctx, p, r.Peer+" with "+how)
}

func (f *fake) Drain(ctx context.Context, r adminapi.DrainRequest, p admin.Progress) (adminapi.Outcome, error) {
	return f.operate(ctx, p, fmt.Sprintf("drain %s over %s, jobs %t, force %t, wait %t", r.Node, r.Over, r.WaitJobs,
		r.Force, r.Wait))
}

func (f *fake) Undrain(ctx context.Context, r adminapi.UndrainRequest, p admin.Progress) (adminapi.Outcome, error) {
	return f.operate(ctx, p, fmt.Sprintf("undrain %s, wait %t", r.Node, r.Wait))
}

func (f *fake) Remove(ctx context.Context, r adminapi.RemoveRequest, p admin.Progress) (adminapi.Outcome, error) {
	return f.operate(ctx, p, fmt.Sprintf("remove %s, force %v%s", r.Node, r.Force, unwaited(r.NoWait)))
}

func (f *fake) Transfer(ctx context.Context, r adminapi.TransferRequest, p admin.Progress) (adminapi.Outcome, error) {
	return f.operate(ctx, p, "transfer to "+r.To+unwaited(r.NoWait))
}

func (f *fake) Rotate(ctx context.Context, r adminapi.RotateRequest, p admin.Progress) (adminapi.Outcome, error) {
	how := fmt.Sprintf("rotate %s, node %q, secret of %d, now %t, finish %t, dry %t", r.What, r.Node, len(r.Secret), r.Now,
		r.Finish, r.DryRun)
	if r.What == adminapi.RotateIdentity {
		how += fmt.Sprintf(", step %q, force %t", r.Step, r.Force)
	}
	return f.operate(ctx, p, how)
}

func unwaited(no bool) string {
	if no {
		return ", nobody waits"
	}
	return ""
}

// errDenied is what a daemon says to a user whom it does not know.
var errDenied = adminapi.Errorf(adminapi.CodeDenied, "root may", "user 1000 may not use the admin socket")

func ptr[T any](v T) *T { return &v }

// daemons are the situations that scripts can ask for.
func daemons() map[string]*fake {
	return map[string]*fake{
		"healthy":  healthy(),
		"holds":    holds(),
		"odd":      odd(),
		"upgrades": healthy(), // as upgraded
		"peerdown": peerDown(),
		"lonely":   lonely(),
		"noquorum": {err: adminapi.Errorf(adminapi.CodeNoQuorum, "start m2 or m3", "a majority of voters cannot be reached"),
			operate: refuses(adminapi.CodeNoQuorum)},
		"denies":   {err: errDenied, operate: refuses(adminapi.CodeDenied)},
		"late":     {err: adminapi.Errorf(adminapi.CodeTimeout, "", "saltclusterd did not answer in time")},
		"aside":    aside(),
		"cutoff":   reachesNobody(),
		"balanced": balanced3(),
		"nearby":   nearby(),
		"mute":     {mute: true},
		"parts":    {part: 1},
		"merges":   merges(),
		"joins":    {operate: joins},
		"starts":   starts(),
		"drains":   {operate: drains},
		"refuses":  {operate: refuses(adminapi.CodeRefused)},
		"member":   {operate: refuses(adminapi.CodeMember)},
		"slow":     {operate: waits},
		"tells":    {operate: tells},
		"leaves":   leaves(),
		"removed":  removed(),
		"differs":  differs(),
		"same":     same(),
		"shares":   {share: fakeShare{byHand: "m2"}},
		"cached":   {share: fakeShare{refused: "m2"}},
		"full":     {share: fakeShare{failing: "m2"}},
		"own":      haveTheirOwn(),
	}
}

func healthy() *fake {
	member := func(id, addr, salt string, leader bool) adminapi.Member {
		return adminapi.Member{
			ID: id, Address: addr, Role: adminapi.RoleVoter, State: adminapi.StateAlive, Leader: leader, Term: 4,
			SaltVersion: salt, Version: "0.1.0", Subscribers: ptr(2), Lag: ptr(uint64(0)), Ready: ptr(true),
		}
	}
	members := []adminapi.Member{
		member("m1", "10.0.0.11:4520", "3006.28", true),
		member("m2", "10.0.0.12:4520", "3007.15", false),
		member("m3", "10.0.0.13:4520", "3008.3", false),
	}
	members[0].Self = true
	return &fake{
		status: adminapi.Status{
			Cluster: &adminapi.Cluster{
				ID: "salt-lab", UUID: "0b0f3a52-5a6e-4a53-9d0c-3f0a4c0b9a11", Leader: "m1", Term: 4, Epoch: 2,
				Quorum: adminapi.Quorum{Voters: 3, Alive: 3, Need: 2, OK: true}, VoterIDs: []string{"m1", "m2", "m3"},
			},
			Members: members,
			Node: adminapi.Node{
				ID: "m1", Version: "0.1.0", SaltVersion: "3006.28",
				Started: time.Now().Add(-3*time.Hour - 12*time.Minute - 30*time.Second),
				Edges: []adminapi.Edge{
					{Name: "pub", Addresses: []string{"10.0.0.11:4505"}, Connections: 2},
					{Name: "req", Addresses: []string{"10.0.0.11:4506"}, Connections: 1, InFlight: 3, Refused: 17},
				},
				Upstream: adminapi.Upstream{
					Address: "127.0.0.1:4506", Up: true, Subscribed: true, SignedIn: true, Connections: 4,
					Since: time.Now().Add(-75*time.Minute - 30*time.Second),
				},
				Ready: true,
				Files: &adminapi.Files{Path: adminapi.PathNative},
				Returns: &adminapi.Returns{
					Paths: []adminapi.ReturnPath{{Command: "_return", Path: adminapi.PathNative},
						{Command: "_syndic_return", Path: adminapi.PathNative}},
					Journals: []adminapi.Journal{{Name: "own", State: "ok",
						Waiting: []adminapi.Waiting{{Consumer: "files"}, {Consumer: "events"}}}},
				},
			},
			Problems: []adminapi.Problem{},
		},
		ring: adminapi.RingInfo{Nodes: []adminapi.RingNode{
			{ID: "m1", State: adminapi.StateAlive, Weight: 1, Share: 0.333},
			{ID: "m2", State: adminapi.StateAlive, Weight: 2, Share: 0.667},
			{ID: "m3", State: adminapi.StateFailed, Weight: 1, Draining: true},
		}},
	}
}

// leaves is a healthy cluster that lets a node go.
func leaves() *fake {
	f := healthy()
	f.operate = tells
	return f
}

// balanced3 is a healthy cluster whose options are known.
func balanced3() *fake {
	f := healthy()
	defaults := config.DefaultConfig()
	defaults.Cluster.ID, defaults.Health.AgentListen = "salt-lab", "0.0.0.0:4581"
	shown := defaults.Show()
	f.config = &shown
	return f
}

// nearby is balanced3 with members at addresses where nobody is, on this host.
func nearby() *fake {
	f := balanced3()
	f.status.Members = slices.Clone(f.status.Members)
	for i := range f.status.Members {
		f.status.Members[i].Address = fmt.Sprintf("127.0.9.%d:4520", i+1)
	}
	return f
}

// haveTheirOwn is nearby with masters that have each for itself what they should have alike, or what only one should
// have.
func haveTheirOwn() *fake {
	f := nearby()
	both := localmaster.Own{"fileserver_events": "on", "rest_cherrypy": "on", "git:/srv/salt": "on",
		"files:/srv/reactor/*.sls": "a", "more": "7"}
	one := maps.Clone(both)
	one["gpg"], one["files:/srv/reactor/*.sls"] = "k", "b"
	both["gpg"] = ""
	for _, found := range localmaster.CompareOwn(map[string]localmaster.Own{"m1": one, "m2": both}) {
		f.status.Problems = append(f.status.Problems,
			adminapi.Problem{Level: adminapi.LevelWarn, Message: found.Message, Hint: found.Fix})
	}
	return f
}

// differs is a cluster in which a key is not where it should be, and one node is of another kind than the others.
func differs() *fake {
	f := same()
	f.verification.Sections[0].Differences = []adminapi.VerifyDifference{
		{Item: "web1", Nodes: map[string]string{adminapi.Decided: "minions 1a2b", "m1": "minions 1a2b", "m2": "",
			"m3": "minions_pre 1a2b"}},
	}
	f.verification.Sections[0].More = 2
	f.verification.Sections[1].Off = map[string]string{"m3": "the master has pillar.cache_driver: redis"}
	f.verification.Sections[2].Moving = 1
	return f
}

// same is a cluster without a difference, of which one node cannot be asked.
func same() *fake {
	f := healthy()
	down := map[string]string{"m2": "call of m2: connection refused"}
	f.verification = adminapi.Verification{From: "m1", Sections: []adminapi.VerifiedSection{
		{Name: "keys", Items: 12, Missing: down}, {Name: "pillar", Items: 11, Missing: down}, {Name: "tokens"}, {Name: "roots", Off: map[string]string{adminapi.Decided: "no revision is in force yet"}},
	}}
	return f
}

// holds has restored two keys that were deleted on m1, too many at once.
func holds() *fake {
	f := healthy()
	f.held = []string{"db1", "web1"}
	return f
}

// odd has a key of a minion that a shell would run.
func odd() *fake {
	f := healthy()
	f.odd = []adminapi.MinionKey{{ID: "$(touch${IFS}owned)", State: adminapi.KeyPending}}
	return f
}

// aside is healthy, but for two returns that the salt-master of m2 does not answer.
func aside() *fake {
	f := healthy()
	f.status.Members[1].Unanswered = 2
	return f
}

// reachesNobody is what m1 knows when it is cut off.
func reachesNobody() *fake {
	f := healthy()
	f.status.Cluster.Leader, f.status.Cluster.Quorum.Alive, f.status.Cluster.Quorum.OK = "", 1, false
	for i := range f.status.Members {
		m := &f.status.Members[i]
		m.Leader = false
		if m.Self {
			m.Ready, m.Reasons = ptr(false), []string{"consensus"}
			continue
		}
		m.State, m.Term, m.Subscribers, m.Lag, m.Ready = adminapi.StateFailed, 0, nil, nil, nil
	}
	return f
}

// peerDown is what m1 knows while m3 is dead and the local master is, too.
func peerDown() *fake {
	f := healthy()
	f.status.Cluster.Quorum.Alive = 2
	m3 := &f.status.Members[2]
	m3.State, m3.Since = adminapi.StateFailed, time.Now().Add(-125*time.Minute)
	m3.Subscribers, m3.Lag, m3.Ready = nil, nil, nil
	m1 := &f.status.Members[0]
	m1.Ready, m1.Reasons, m1.Lag = ptr(false), []string{"master"}, ptr(uint64(1200))
	n := &f.status.Node
	n.Ready = false
	n.Files = &adminapi.Files{Path: adminapi.PathMaster, Reason: "master_stats is on"}
	n.Returns = &adminapi.Returns{
		Paths: []adminapi.ReturnPath{{Command: "_return", Path: adminapi.PathMaster, Reason: "job_cache is off"}},
		Journals: []adminapi.Journal{
			{Name: "own", State: "disk full", Error: "no space left on device"},
			{Name: "python", State: "ok", Waiting: []adminapi.Waiting{
				{Consumer: "master", Records: 12, Oldest: time.Now().Add(-90*time.Minute - 30*time.Second),
					Error: "the salt-master does not answer"},
			}},
		},
		Unanswered: 2, UnansweredSince: ago(3*time.Hour + 30*time.Second),
	}
	n.Upstream = adminapi.Upstream{Address: "127.0.0.1:4506", Since: time.Now().Add(-2*time.Hour - 30*time.Second),
		Error: "connection refused"}
	n.Reasons = []adminapi.Reason{
		{Check: "master", Level: adminapi.LevelFail, Message: "the local salt-master does not answer",
			Hint: "systemctl start salt-master"},
		{Check: "clock", Level: adminapi.LevelWarn, Message: "is 2 s ahead of m2"},
	}
	f.status.Problems = []adminapi.Problem{
		{Level: adminapi.LevelFail, Node: "m1", Message: "the local salt-master does not answer",
			Hint: "systemctl start salt-master"},
		{Level: adminapi.LevelWarn, Message: "m3 has failed\x1b[2J", Hint: "start saltclusterd there, or remove it"},
	}
	return f
}

func lonely() *fake {
	return &fake{
		status: adminapi.Status{
			Node: adminapi.Node{ID: "m9", Version: "0.1.0"},
			Problems: []adminapi.Problem{{Level: adminapi.LevelFail, Message: "this node belongs to no cluster",
				Hint: "saltclusterctl bootstrap, or saltclusterctl join PEER"}},
		},
	}
}

func removed() *fake {
	f := lonely()
	f.status.Removed = "this node was removed from the cluster (cluster salt-lab, 2026-11-21 07:00:00)"
	return f
}

func tells(_ context.Context, p admin.Progress, what string) (adminapi.Outcome, error) {
	p("what", what)
	return adminapi.Outcome{Message: "done: " + what + "."}, nil
}

func joins(_ context.Context, p admin.Progress, what string) (adminapi.Outcome, error) {
	p("prove", "proving the right to join "+what)
	p("catch-up", "receiving the log")
	return adminapi.Outcome{
		Node: "m2", ClusterID: "salt-lab", UUID: "0b0f3a52", Role: adminapi.RoleVoter, Ready: true,
		Message: "m2 is a voter of salt-lab.", Next: []string{"restart salt-master: it still presents its old key",
			"saltclusterctl status"},
	}, nil
}

// starts is a node that is healthy once it belongs to the cluster.
func starts() *fake {
	f := healthy()
	f.operate = joins
	return f
}

func drains(_ context.Context, p admin.Progress, what string) (adminapi.Outcome, error) {
	p("handing-over", what)
	return adminapi.Outcome{Node: "m2", Message: "m2 is drained", Next: []string{"saltclusterctl undrain m2"}}, nil
}

func refuses(code adminapi.Code) func(context.Context, admin.Progress, string) (adminapi.Outcome, error) {
	return func(context.Context, admin.Progress, string) (adminapi.Outcome, error) {
		return adminapi.Outcome{}, adminapi.Errorf(code, "compare the option on both nodes", "it said no: cluster_secret")
	}
}

func waits(ctx context.Context, p admin.Progress, _ string) (adminapi.Outcome, error) {
	p("catch-up", "receiving the log")
	<-ctx.Done()
	return adminapi.Outcome{}, ctx.Err()
}

func (f *fake) RecoverPlan(context.Context) (adminapi.RecoverPlan, error) {
	return adminapi.RecoverPlan{
		ClusterID: "salt-lab", Node: "m1", Rev: 41, Index: 57, LastContact: time.Now().Add(-2*time.Hour - 30*time.Second),
		Keys: 12,
		Drop: []adminapi.RecoverDrop{
			{ID: "m2", Address: "10.0.0.12:4520", Role: adminapi.RoleVoter, State: adminapi.StateFailed},
			{ID: "m3", Address: "10.0.0.13:4520", Role: adminapi.RoleVoter, State: adminapi.StateFailed},
		},
	}, f.err
}

func (f *fake) Recover(ctx context.Context, r adminapi.RecoverRequest, p admin.Progress) (adminapi.Outcome, error) {
	return f.operate(ctx, p, fmt.Sprintf("recover at %d", r.Rev))
}

func (f *fake) SaveSnapshot(_ context.Context, w io.Writer) error {
	if f.err != nil {
		return f.err
	}
	return archive.Write(w, archive.Header{ClusterID: "salt-lab", UUID: "0b0f3a52", Node: "m1", Rev: 41,
		Members: []string{"m1", "m2"},
		Keys:    archive.Counts{Accepted: 12}}, archive.Content{Private: []byte("PRIVATE"), State: []byte("STATE")})
}

func (f *fake) RestoreSnapshot(ctx context.Context, _ adminapi.RestoreRequest, file io.Reader,
	p admin.Progress) (adminapi.Outcome, error) {
	h, c, err := archive.Read(file)
	if err != nil {
		return adminapi.Outcome{}, err
	}
	return f.operate(ctx, p, fmt.Sprintf("restore %s with %s", h.ClusterID, c.State))
}
