package daemon

import (
	"context"
	"strings"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/wall"
)

// buildGuard makes what judges requests before they go anywhere.
func (s *service) buildGuard() *guard.Guard {
	d := s.m.d
	e := d.cfg.Edge
	modes := map[wall.Rule]wall.Mode{}
	for name, word := range e.Wall {
		rule, badRule := wall.ParseRule(name)
		mode, badMode := wall.ParseMode(word)
		if badRule == nil && badMode == nil { // the configuration was checked
			modes[rule] = mode
		}
	}
	s.since, s.members = time.Now(), s.m.cons.View
	s.wall = wall.New(wall.Config{
		Modes: modes, Policy: wallPolicy(d.master), Rate: int64(e.MinionRequestRate), Bytes: int64(e.MinionRequestBytes),
		Answers:  int64(e.MinionAnswerBytes),
		Accepted: func(id string) bool { _, ok := s.keys.Accepted(id); return ok || s.namesMaster(id) }, Job: s.knowsJob,
		Own: s.ownMaster, Registerer: d.reg,
	})
	return guard.New(guard.Config{
		MinVersion: e.RequestMinimumVersion, AllowClear: e.AllowClearCommands, Wall: s.wall,
		Known: func(pub string) bool { return s.signin.Parsed(pub) },
		TTL:   s.followed.TTL, Logger: d.log, Registerer: d.reg,
	})
}

// namesMaster says whether an id is one under which a master of the cluster keeps what its runners return, or a node's.
func (s *service) namesMaster(id string) bool {
	if id != "" && id == s.m.d.master.Text("id") {
		return true
	}
	_, ok := s.m.cons.View().Member(node.ID(strings.TrimSuffix(id, "_master")))
	return ok
}

// wallPolicy reads what the rules have to know of the local master.
func wallPolicy(master *localmaster.Config) wall.Policy {
	p := wall.Policy{FileRecv: master.Bool("file_recv"), Syndics: master.Bool("order_masters"), Filters: filtersTags(master.Version)}
	if master.SetBy("on_demand_ext_pillar") != "" {
		p.OnDemand = master.Strings("on_demand_ext_pillar")
	}
	return p
}

// filtersTags says whether a master keeps tags of masters out of lists of events by itself.
func filtersTags(v localmaster.Version) bool {
	switch v.Major {
	case 3006:
		return v.Minor >= 12
	case 3007:
		return v.Minor >= 4
	}
	return v.Major >= 3008
}

// jidTime is the layout of what a job id begins with, UTC.
const jidTime = "20060102150405"

// jidClock is by how much a job id may be older than the job, when a clock is set.
const jidClock = time.Minute

// ownMaster says whether what bears a master_id, which publications have and returns bring back, is judged here: it is that of the local master, or
// nobody's. A minion may say what it likes, and what is no other master's stays here.
func (s *service) ownMaster(id string) bool {
	return id == s.m.d.master.MasterID || id == string(s.m.d.id) || !publishes(s.members(), node.ID(id))
}

// publishes says whether there can be jobs of a node.
func publishes(members state.View, id node.ID) bool {
	m, ok := members.Member(id)
	return ok && !m.Witness
}

// knowsJob says whether a job was published from here whose return has come. The table of jobs has every one that went out since
// the program was started, until it is full; before a minion gets it. What the job cache has was published, whatever the clock has said
// since.
func (s *service) knowsJob(jid, masterID string) wall.Knowledge {
	if _, ok := s.jobs.Lookup(jid); ok {
		return wall.Published
	}
	if masterID != "" && !s.ownMaster(masterID) {
		return wall.Uncertain // that node knows
	}
	if len(jid) < 20 || s.jobs.Len() >= router.DefaultJobs {
		return wall.Uncertain
	}
	at, err := time.Parse(jidTime, jid[:len(jidTime)])
	if master := s.m.d.master; err != nil || at.Before(s.since.Add(jidClock)) || jobcache.Kept(master.CacheDir, master.Text("hash_type"), jid) {
		return wall.Uncertain
	}
	return wall.NotPublished
}

// wallLine sums up what the rules have found.
func (s *service) wallLine() *adminapi.WallLine {
	line := &adminapi.WallLine{}
	for _, f := range s.wall.Found() {
		switch f.Mode {
		case wall.Enforce:
			line.Enforced++
		case wall.Log:
			line.Log++
		default:
			line.Off++
		}
		line.Refused += f.Refused
		line.Logged += f.Logged
	}
	return line
}

// Wall implements admin.Waller.
func (d *Daemon) Wall(context.Context) (adminapi.Wall, error) {
	s, err := d.service()
	if err != nil {
		return adminapi.Wall{}, err
	}
	out := adminapi.Wall{From: string(d.id)}
	for _, f := range s.wall.Found() {
		info := wall.Rules[f.Rule]
		out.Rules = append(out.Rules, adminapi.WallRule{
			Name: info.Name, Mode: f.Mode.String(), Fixed: info.Fixed, Doc: info.Doc,
			Refused: f.Refused, Logged: f.Logged, Last: f.Last.At, Minion: f.Last.ID,
		})
	}
	return out, nil
}

// Protocols implements admin.Waller.
func (d *Daemon) Protocols(ctx context.Context) (adminapi.Protocols, error) {
	s, err := d.service()
	if err != nil {
		return adminapi.Protocols{}, err
	}
	return s.m.minions.Protocols(ctx), nil
}
