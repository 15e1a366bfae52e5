package daemon

import (
	"context"

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
		admin.Tokens(joining.TokenVerbs{Of: ofMember(d, (*member).admissionOf)}),
		admin.Draining(drain.Verbs{Of: ofMember(d, (*member).drainsOf)}),
		admin.Transferring(leadership.Verbs{Of: ofMember(d, (*member).leadershipOf)}),
		admin.Rotating(rotation.Verbs{Of: d.rotations}),
		admin.Governing(removal.Verbs{Of: ofMember(d, (*member).removerOf)}),
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
		m := d.current()
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
		m := d.current()
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

func (m *member) admissionOf() *joining.Admission { return m.admission }

func (m *member) drainsOf() *drain.Cluster { return m.drains }

func (m *member) leadershipOf() *leadership.Control { return m.leadership }

func (m *member) removerOf() *removal.Remover { return m.remover }

// rotations returns what operators can rotate on this node (rotation.Verbs).
func (d *Daemon) rotations() (map[string]rotation.Func, adminapi.Outcome, error) {
	m := d.current()
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
		"a witness holds nothing to compare"), (*service).newLedgers)
}

// minionVerbs returns what operators ask about minions.
func (d *Daemon) minionVerbs() minionview.Verbs {
	return minionview.Verbs{Of: ofMember(d, func(m *member) *minionview.View { return m.minions })}
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
	protocols := ofService(d, func(s *service) *minionview.View { return s.m.minions })
	return masterlink.WallVerbs{
		Self: string(d.id), Of: ofService(d, func(s *service) *wall.Wall { return s.wall }),
		List: func(ctx context.Context) (adminapi.Protocols, error) {
			minions, err := protocols()
			if err != nil {
				return adminapi.Protocols{}, err
			}
			return minions.Protocols(ctx), nil
		},
	}
}

// pageSource implements statuspage.Source.
type pageSource struct {
	*operator.Node
	operator.Jobs
	minionview.Verbs
	masterlink.WallVerbs
	roots rootsadmin.Verbs
}

// RootsStatus implements statuspage.Source.
func (s pageSource) RootsStatus(ctx context.Context) (adminapi.RootsStatus, error) {
	return s.roots.RootsStatus(ctx)
}

// statusPage makes the page, and what it shows over time.
func (d *Daemon) statusPage() (*statuspage.Page, *statuspage.Series) {
	return operator.NewPage(operator.PageConfig{
		Self: d.id, Source: pageSource{d.node, d.jobVerbs(), d.minionVerbs(), d.wallVerbs(), d.rootsVerbs()},
		Gatherer: d.reg, Logger: d.log,
	})
}
