package daemon

import (
	"log/slog"

	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/fsync/ledger"
	"saltclusterd/sidecar/adminapi"
)

// SetLogLevelVar gives operators the level of the process's logger.
func (d *Daemon) SetLogLevelVar(level *slog.LevelVar) { d.logLevels.Control(level) }

// jobVerbs returns what operators ask about jobs.
func (d *Daemon) jobVerbs() operator.Jobs { return operator.Jobs{Of: d.jobCache, Logger: d.log} }

func (d *Daemon) jobCache() (operator.JobCache, error) {
	s, err := d.service()
	if err != nil {
		return nil, err
	}
	return s.cache, nil
}

// ledgers returns what this node holds, or an error for operators.
func (d *Daemon) ledgers() (*operator.Ledgers, error) {
	m := d.current()
	if m == nil {
		return nil, d.errNoMember()
	}
	if m.svc == nil {
		return nil, adminapi.Errorf(adminapi.CodeInvalid, "ask on a node that has a salt-master", "a witness holds nothing to compare")
	}
	return m.svc.newLedgers(), nil
}

func (s *service) newLedgers() *operator.Ledgers {
	return operator.NewLedgers(operator.LedgersConfig{
		Self: s.m.d.id, Others: s.m.otherMasters, Client: s.m.client(), Sections: s.sections,
	})
}

// sections lists what verify compares, in the order in which it is shown. Whatever else is replicated is added here.
func (s *service) sections() []operator.Section {
	return []operator.Section{
		{Name: "keys", Holds: s.dir.Ledger, Decided: s.dir.Decided},
		{Name: "grains", Holds: s.data.Ledger},
		{Name: "pillar", Holds: s.data.PillarLedger},
		{Name: "mine", Holds: s.mines.Ledger},
		{Name: "tokens", Holds: s.tokens.Ledger},
		{Name: "roots", Holds: func() (ledger.Ledger, error) { return s.roots.Ledger(s.ctx) }, Decided: s.roots.Decided},
		{Name: "jobs", Holds: s.cache.Ledger, Rules: operator.JobRules(s.m.jobReplicas)},
	}
}
