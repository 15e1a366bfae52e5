package daemon

import (
	"saltclusterd/cmd/saltclusterd/drain"
	"saltclusterd/cmd/saltclusterd/joining"
	"saltclusterd/cmd/saltclusterd/keysadmin"
	"saltclusterd/cmd/saltclusterd/leadership"
	"saltclusterd/cmd/saltclusterd/masterlink"
	"saltclusterd/cmd/saltclusterd/migration"
	"saltclusterd/cmd/saltclusterd/minionview"
	"saltclusterd/cmd/saltclusterd/native"
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/cmd/saltclusterd/removal"
	"saltclusterd/cmd/saltclusterd/rootsadmin"
	"saltclusterd/cmd/saltclusterd/rotation"
	"saltclusterd/consensus/state"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/statuspage"
	"saltclusterd/sidecar/wall"
)

// verbs are what operators can ask of this node.
func (d *Daemon) verbs() []admin.Verbs {
	minions, keys := d.minionVerbs(), d.keyVerbs()
	return []admin.Verbs{
		admin.Reports(d.node),
		admin.Joining(d.joiner),
		admin.Tokens(joining.TokenVerbs{Of: ofMember(d, func(m *member) *joining.Admission { return m.admission })}),
		admin.Draining(drain.Verbs{Of: ofMember(d, func(m *member) *drain.Cluster { return m.drains })}),
		admin.Transferring(leadership.Verbs{Of: ofMember(d, func(m *member) *leadership.Control { return m.leadership })}),
		admin.Rotating(rotation.Verbs{Of: d.rotations}),
		admin.Governing(removal.Verbs{Of: ofMember(d, func(m *member) *removal.Remover { return m.remover })}),
		admin.Recovery(d.newRecoverer()),
		admin.Jobs(d.jobVerbs()),
		admin.Upgrading(d.upgrader),
		admin.Walls(d.wallVerbs()),
		admin.MinionViews(minions),
		admin.Events(minions),
		admin.Verifying(operator.Verifying{Of: d.ledgers()}),
		admin.Keys(keys),
		admin.HeldKeys(keys),
		admin.KeyTransfer(keys),
		admin.LogLevels(d.logLevels),
		admin.Checkups(d.node),
		admin.Roots(d.rootsVerbs()),
		admin.Migration(migration.Verbs{Of: ofMember(d, (*member).migrationCluster)}),
		admin.Returns(d.returnVerbs()),
	}
}

// ofMember returns a function that returns what operators ask a running membership, or the error of a node without one.
func ofMember[T any](d *Daemon, get func(*member) T) func() (T, error) {
	return func() (of T, err error) {
		m := d.tenure.Current()
		if m == nil {
			return of, d.errNoMember()
		}
		return get(m), nil
	}
}

// errOnWitness is what a witness answers.
var errOnWitness = adminapi.Errorf(
	adminapi.CodeRefused, "ask on a node that has a salt-master", "a witness serves no minions")

// ofService is ofMember for what only a member with a salt-master has.
func ofService[T any](d *Daemon, get func(*service) T) func() (T, error) {
	return ofServiceOr(d, errOnWitness, get)
}

// ofServiceOr is ofService with the error of a witness.
func ofServiceOr[T any](d *Daemon, onWitness error, get func(*service) T) func() (T, error) {
	return func() (of T, err error) {
		m := d.tenure.Current()
		if m == nil {
			return of, d.errNoMember()
		}
		s, ok := m.role.(*service)
		if !ok {
			return of, onWitness
		}
		return get(s), nil
	}
}

// rotations returns what operators can rotate on this node (rotation.Verbs).
func (d *Daemon) rotations() (map[string]rotation.Func, adminapi.Outcome, error) {
	m := d.tenure.Current()
	if m == nil {
		return nil, adminapi.Outcome{}, d.errNoMember()
	}
	kinds := m.secrets.Kinds()
	kinds[adminapi.RotateSecret] = m.admission.RotateSecret
	kinds[adminapi.RotateCertificates], kinds[adminapi.RotateIdentity] = m.certificates.Rotate, m.identity.Rotate
	return kinds, adminapi.Outcome{
		Node: string(d.id), ClusterID: m.Record.ClusterID, UUID: m.Record.UUID, Role: adminapi.RoleVoter,
	}, nil
}

// jobVerbs returns what operators ask about jobs.
func (d *Daemon) jobVerbs() operator.Jobs {
	return operator.Jobs{Of: ofService(d, func(s *service) operator.JobCache { return s.stores.Jobs }), Logger: d.log}
}

// keyVerbs returns what operators ask about minion keys.
func (d *Daemon) keyVerbs() keysadmin.Verbs {
	return keysadmin.Verbs{Of: ofMember(d, func(m *member) *keysadmin.Keys {
		cfg := keysadmin.Config{
			Self: d.id, Log: m.Consensus, HeldChanged: func() { d.checks.Kick("keys") },
			AwaitRev: m.AwaitRevision, Audit: m.Audit, LacksQuorum: m.LacksQuorum, NoQuorum: m.NoQuorum,
		}
		m.role.addKeys(&cfg)
		return keysadmin.New(cfg)
	})}
}

// ledgers returns what compares this node with others.
func (d *Daemon) ledgers() func() (*operator.Ledgers, error) {
	return ofServiceOr(d, adminapi.Errorf(adminapi.CodeInvalid, "ask on a node that has a salt-master",
		"a witness has nothing to compare"), (*service).newLedgers)
}

// minionVerbs returns what operators ask about minions.
func (d *Daemon) minionVerbs() minionview.Verbs {
	view := func(s *service) *minionview.View { return s.minions }
	return minionview.Verbs{
		Connections: ofMember(d, (*member).connections),
		Present:     ofServiceOr(d, minionview.ErrNoPresence, view), Events: ofServiceOr(d, minionview.ErrNoEvents, view),
		Proofs: ofService(d, view),
	}
}

// rootsVerbs are what operators can ask about roots.
func (d *Daemon) rootsVerbs() rootsadmin.Verbs {
	return rootsadmin.Verbs{
		Of: ofServiceOr(d, adminapi.Errorf(adminapi.CodeRefused, "ask on a node with a salt-master",
			"this node is a witness and has no roots"), func(s *service) *rootsadmin.Roots { return s.roots }),
		View: ofMember(d, func(m *member) state.View { return m.Consensus.View() }),
	}
}

// returnVerbs returns what operators ask about returns that the master does not answer.
func (d *Daemon) returnVerbs() native.Verbs {
	return native.Verbs{Self: string(d.id), Of: ofService(d, func(s *service) *native.Service { return s.native })}
}

// wallVerbs returns what operators ask about the rules for requests.
func (d *Daemon) wallVerbs() masterlink.WallVerbs {
	return masterlink.WallVerbs{
		Self: string(d.id), Of: ofService(d, func(s *service) *wall.Wall { return s.wall }),
		List: d.minionVerbs().ListProtocols,
	}
}

// pageSource implements statuspage.Source.
type pageSource struct {
	*operator.Node
	operator.Jobs
	minionview.Verbs
	masterlink.WallVerbs
	rootsVerbs
}

type rootsVerbs = rootsadmin.Verbs

// statusPage makes the page, and what it shows over time.
func (d *Daemon) statusPage() (*statuspage.Page, *statuspage.Series) {
	return operator.NewPage(operator.PageConfig{
		Self: d.id, Source: pageSource{d.node, d.jobVerbs(), d.minionVerbs(), d.wallVerbs(), d.rootsVerbs()},
		Gatherer: d.reg, Logger: d.log,
	})
}
