package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"saltclusterd/cmd/saltclusterd/masterlink"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/events"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/returns"
	"saltclusterd/sidecar/ring"
	"saltclusterd/sidecar/spool"
)

// returnCommands are what minions and syndics send returns with.
var returnCommands = []string{"_return", "_syndic_return"}

// buildReturns makes what takes returns without the local master.
func (s *service) buildReturns() error {
	d := s.m.d
	mode, err := s.returnMode(d.master)
	if err != nil {
		return err
	}
	s.fired, err = events.New(events.Config{
		Bus: s.bus, Mode: s.eventMode(d.master, mode), Behind: busPatience(d.master), Logger: d.log, Registerer: d.reg,
	})
	if err != nil {
		return err
	}
	s.returnOptions = d.master
	s.returns, err = returns.New(returns.Config{
		Self: d.id, Dir: filepath.Join(d.cfg.Paths.StateDir, "returns"), MaxBytes: int64(d.cfg.Salt.SpoolSize),
		Mode: mode, Bus: s.bus, Python: lateProxy{s}, Peers: returnPeers{s.m},
		Ahead:         s.jobsOff() == "",
		KeepForPython: func() bool { return s.followed.TTL() <= 0 },
		HoldBack:      returnHoldBack(d.master.Version.Major), Published: s.jobs.Seen, Contested: s.jobs.Contested, Behind: busPatience(d.master),
		Logger: d.log, Registerer: d.reg,
	})
	return err
}

// returnMode says which returns are taken without a master of that configuration.
func (s *service) returnMode(master *localmaster.Config) (returns.Mode, error) {
	d := s.m.d
	mode := returns.Mode{Reasons: map[string]string{}, Mend: d.mendReturn(master), Stored: storedReturn(master), Disk: returnDisk(master)}
	for _, cmd := range returnCommands {
		if ok, reason := jobcache.Native(master, master.Version.Major, cmd); !ok {
			mode.Reasons[cmd] = reason
		} else if !d.cfg.Salt.NativeReturns {
			mode.Reasons[cmd] = "the option native_returns is off"
		}
	}
	for cmd, reason := range mode.Reasons {
		d.log.Info("returns are left to the salt-master", "cmd", cmd, "reason", reason)
	}
	var err error
	if len(mode.Reasons) < len(returnCommands) {
		mode.Cache, err = s.newJobCache(master)
	}
	return mode, err
}

// eventMode says whether events are fired without a master of that configuration. What it takes to plan them is the returns'.
func (s *service) eventMode(master *localmaster.Config, mode returns.Mode) events.Mode {
	if ok, reason := jobcache.Native(master, master.Version.Major, "_minion_event"); !ok {
		return events.Mode{Reason: reason}
	}
	if !s.m.d.cfg.Salt.NativeReturns {
		return events.Mode{Reason: "the option native_returns is off"}
	}
	if mode.Cache == nil {
		return events.Mode{Reason: "returns are left to the salt-master"}
	}
	return events.Mode{Planner: mode.Cache}
}

// mendReturn clears away what a killed master of that configuration has left of a return; nil where its returns are no files.
func (d *Daemon) mendReturn(master *localmaster.Config) func(jid, minion string) {
	if master.Text("master_job_cache") != "local_cache" {
		return nil
	}
	return func(jid, minion string) {
		removed, err := jobcache.Mend(master.CacheDir, master.Text("hash_type"), jid, minion)
		if removed || err != nil {
			d.log.Warn("half-written return of a killed salt-master removed", "jid", jid, "minion", minion, "err", err)
		}
	}
}

// returnDisk is where a master of that configuration stores returns; nil where they are no files.
func returnDisk(master *localmaster.Config) returns.Disk {
	if master.Text("master_job_cache") != "local_cache" {
		return nil
	}
	return jobcache.NewSyncer(master.CacheDir)
}

// storedReturn looks into the job cache of a master of that configuration; nil where its returns are no files.
func storedReturn(master *localmaster.Config) func(jid, minion string) bool {
	if master.Text("master_job_cache") != "local_cache" {
		return nil
	}
	return func(jid, minion string) bool {
		return jobcache.Stored(master.CacheDir, master.Text("hash_type"), jid, minion)
	}
}

// rereadOptions follows the master's configuration, which it reads when it starts. Options that cannot be followed leave
// everything as it was. When they cannot be read the master itself answers.
func (s *service) rereadOptions() {
	now, err := s.followed.Reread()
	switch {
	case now == nil:
		s.leaveToMaster(err)
		return
	case err != nil:
		return
	}
	d := s.m.d
	s.cache.SetKeep(keepJobs(now))
	s.wall.Use(masterlink.WallPolicy(now))
	s.lookAtFiles(now)
	s.lookAtMines(now)
	native := true
	for _, cmd := range returnCommands { // the site's own modules are no options
		is, _ := s.returns.Native(cmd)
		can, _ := jobcache.Native(now, now.Version.Major, cmd)
		native = native && is == (can && d.cfg.Salt.NativeReturns)
	}
	if native && jobcache.Same(now, s.returnOptions) {
		return
	}
	mode, err := s.returnMode(now)
	if err == nil {
		s.returnOptions = now
		s.fired.Use(s.eventMode(now, mode))
		err = s.returns.Use(mode)
	}
	if err != nil {
		d.log.Error("returns are taken as before", "err", err)
	}
}

// leaveToMaster gives a master that has started with options which cannot be read here (one of its files is closed to its own user)
// what depends on them.
func (s *service) leaveToMaster(err error) {
	reason := "its options cannot be read: " + err.Error()
	s.files.Use(nil, reason)
	s.mined.Use(nil, reason)
	s.fired.Use(events.Mode{Reason: reason})
	mode := returns.Mode{
		Reasons: map[string]string{}, Mend: s.m.d.mendReturn(s.returnOptions), Stored: storedReturn(s.returnOptions),
		Disk: returnDisk(s.returnOptions),
	}
	for _, cmd := range returnCommands {
		mode.Reasons[cmd] = reason
	}
	if err := s.returns.Use(mode); err != nil {
		s.m.d.log.Error("returns are taken as before", "err", err)
	}
}

func (s *service) newJobCache(master *localmaster.Config) (*jobcache.Cache, error) {
	d := s.m.d
	owner, err := master.Owner()
	if err != nil {
		return nil, err
	}
	return jobcache.New(jobcache.Config{
		Options: master, Version: master.Version, CacheDir: master.CacheDir, UID: owner.UID, GID: owner.GID,
		Umask: s.umask.Mask, Keys: s.keys, IDSuffix: idSuffix(d.id), Stored: s.returnStored, Log: s.said, Logger: d.log, Register: d.reg,
	})
}

// idSuffix is what the ids of jobs end with that this node makes.
func idSuffix(id node.ID) string { return fmt.Sprintf("_%d", xxhash.Sum64String(string(id))%1e9) }

// returnHoldBack is how long after the publication of a job its returns are fired at the earliest.
func returnHoldBack(major int) time.Duration {
	if major == 3007 {
		return 100 * time.Millisecond
	}
	return 0
}

// busPatience is how many events a subscriber of the master's bus may be behind before the master cuts it; 0: any number. Those before
// 3008 keep for each what it has not read.
func busPatience(master *localmaster.Config) int {
	if master.Version.Major < 3008 {
		return 0
	}
	return int(max(master.Int("pub_server_write_queue_size"), 0))
}

// lateProxy is the proxy, which is made after the returns' service (returns.Python).
type lateProxy struct{ s *service }

func (p lateProxy) Up() bool { return p.s.masterServes() }

func (p lateProxy) Return(ctx context.Context, minion string, load []byte) error {
	return p.s.proxy.Return(ctx, minion, load)
}

// returnPeers are the other nodes as the returns' service sees them (returns.Peers).
type returnPeers struct{ m *member }

// Standing implements returns.Peers. A node that does not know the roster for certain removes nobody.
func (p returnPeers) Standing(id node.ID) returns.Standing {
	v := p.m.cons.View()
	if _, member := v.Member(id); !member {
		if _, self := v.Member(p.m.d.id); !self || !v.Initialized() || !p.m.cons.CaughtUp() {
			return returns.Unknown
		}
		return returns.Removed
	}
	if g, ok := p.m.gossip.Member(id); ok && g.State == gossip.Alive && g.Meta.Ready {
		return returns.Reachable
	}
	return returns.Unreachable
}

// Owner implements returns.Peers: among the nodes whose masters answer, or when there are none, those that need none.
func (p returnPeers) Owner(jid string) (node.ID, bool) {
	usable, any := p.m.ringNodes(), []ring.Node(nil)
	for _, n := range p.m.routes().Nodes {
		if n.Alive && n.TakesReturns {
			any = append(any, ring.Node{ID: n.ID, Weight: n.Weight, Draining: n.Draining})
		}
	}
	if len(usable) == 0 {
		usable = any
	}
	return ring.Owner(jid, usable)
}

// Successor implements returns.Peers: as Owner, without this node.
func (p returnPeers) Successor(jid string) (node.ID, bool) {
	var usable, any []ring.Node
	for _, n := range p.m.ringNodes() {
		if n.ID != p.m.d.id && !n.Draining {
			usable = append(usable, n)
		}
	}
	for _, n := range p.m.routes().Nodes {
		if n.Alive && n.TakesReturns && !n.Draining && n.ID != p.m.d.id {
			any = append(any, ring.Node{ID: n.ID, Weight: n.Weight})
		}
	}
	if len(usable) == 0 {
		usable = any
	}
	return ring.Owner(jid, usable)
}

// Keepers implements returns.Peers.
func (p returnPeers) Keepers(jid string) []node.ID {
	var nodes []ring.Node
	for _, n := range p.m.ringOf(p.m.cons.View()) {
		if n.ID != p.m.d.id && p.Standing(n.ID) == returns.Reachable {
			nodes = append(nodes, n)
		}
	}
	return ring.Ranked(jid, nodes)
}

// Copiers implements returns.Peers.
func (p returnPeers) Copiers(jid string) (out []node.ID) {
	replicas := p.m.jobReplicas(jid)
	for _, n := range p.m.routes().Nodes {
		switch {
		case !n.Alive || !n.TakesReturns || !slices.Contains(replicas, n.ID):
		case n.ID == p.m.d.id:
			out = slices.Insert(out, 0, n.ID)
		default:
			out = append(out, n.ID)
		}
	}
	return out
}

// Heir implements returns.Peers: while this node is drained to leave, the ring's next for the node whose returns it keeps.
func (p returnPeers) Heir(kept node.ID) (node.ID, bool) {
	self, ok := p.m.cons.View().Member(p.m.d.id)
	if !ok || !self.Draining {
		return "", false
	}
	var heirs []ring.Node
	for _, n := range p.m.routes().Nodes {
		if n.Alive && n.TakesReturns && !n.Draining && n.ID != kept && n.ID != p.m.d.id {
			heirs = append(heirs, ring.Node{ID: n.ID, Weight: n.Weight})
		}
	}
	return ring.Owner(string(kept), heirs)
}

const (
	// sendReturnsTimeout bounds one batch, which may be large and whose receiver has to write it.
	sendReturnsTimeout = 30 * time.Second
	maxReturnsAnswer   = 1 << 10
)

// Send implements returns.Peers.
func (p returnPeers) Send(ctx context.Context, to node.ID, batch []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendReturnsTimeout)
	defer cancel()
	_, err := p.m.call(ctx, http.MethodPost, to, returns.Path, batch, maxReturnsAnswer)
	return err
}

// takesReturns is what this node tells the others.
func (s *service) takesReturns() bool {
	ok, _ := s.returns.Native("_return")
	return ok && s.serving.Load()
}

// returnsStatus describes how returns are taken and what waits.
func (s *service) returnsStatus() *adminapi.Returns {
	out := &adminapi.Returns{}
	for _, cmd := range returnCommands {
		path := adminapi.ReturnPath{Command: cmd, Path: adminapi.PathNative}
		if ok, reason := s.returns.Native(cmd); !ok {
			path.Path, path.Reason = adminapi.PathMaster, reason
		}
		out.Paths = append(out.Paths, path)
	}
	if ok, reason := s.fired.Native(); ok {
		out.Paths = append(out.Paths, adminapi.ReturnPath{Command: "_minion_event", Path: adminapi.PathNative})
	} else {
		out.Paths = append(out.Paths, adminapi.ReturnPath{Command: "_minion_event", Path: adminapi.PathMaster, Reason: reason})
	}
	out.Paths = append(out.Paths, s.minePaths()...)
	for _, j := range s.returns.Stats() {
		row := adminapi.Journal{Name: j.Name, State: string(j.State), Bytes: j.Bytes, MaxBytes: j.MaxBytes, Error: j.Err}
		for _, c := range j.Consumers {
			w := adminapi.Waiting{Consumer: c.Name, Records: c.Pending, Error: c.Err}
			if at, ok := j.Oldest[c.Name]; ok && c.Pending > 0 {
				w.Oldest = at
			}
			row.Waiting = append(row.Waiting, w)
		}
		out.Journals = append(out.Journals, row)
	}
	if aside, _ := s.returns.Unanswered(); len(aside) > 0 {
		out.Unanswered, out.UnansweredSince = len(aside), aside[0].Since
	}
	return out
}

// stuckAfter is how long the job cache may refuse to be written before health says so.
const stuckAfter = 10 * time.Second

// checkReturns fails when returns of minions can neither be kept nor be given to the master.
func (d *Daemon) checkReturns(ctx context.Context) health.Result {
	m := d.current()
	if m == nil || !m.ready() {
		return fine
	}
	for _, j := range m.svc.returns.Stats() {
		if j.State != spool.StateOK {
			r := health.Result{
				Level: health.Warn, Reason: fmt.Sprintf("the journal of returns %q takes nothing (%s): %s", j.Name, j.State, j.Err),
				Hint: "make room in or repair " + filepath.Join(d.cfg.Paths.StateDir, "returns") + ", or raise spool_size",
			}
			if m.svc.masterProblem(ctx) != "" {
				r.Level = health.Fail
			}
			return r
		}
		for _, c := range j.Consumers {
			if c.Name == "files" && c.Err != "" && time.Since(c.Since) > stuckAfter {
				return health.Result{
					Level: health.Warn, Reason: "acknowledged returns cannot be written to the job cache: " + c.Err,
					Hint: "they wait in the journal; see to " + filepath.Join(d.master.CacheDir, "jobs"),
				}
			}
		}
	}
	aside, full := m.svc.returns.Unanswered()
	return judgeUnanswered(aside, full, time.Now())
}

// unansweredAfter is how long the salt-master may not answer a return, which was given to it again meanwhile, before health says so.
const unansweredAfter = 5 * time.Minute

// judgeUnanswered warns of returns that the salt-master does not answer though it answers others, what waits longest first.
func judgeUnanswered(aside []returns.Unanswered, full bool, now time.Time) health.Result {
	const hint = "saltclusterctl returns list shows them, and the salt-master's log may say why; saltclusterctl returns drop ID gives one up"
	switch {
	case full:
		return health.Result{
			Level:  health.Warn,
			Reason: plural(len(aside), "return") + " that the salt-master does not answer, and there is no room for more",
			Hint:   hint,
		}
	case len(aside) > 0 && now.Sub(aside[0].Since) > unansweredAfter:
		return health.Result{
			Level: health.Warn,
			Reason: fmt.Sprintf("the salt-master does not answer %s that only it can take, though it answers others; the first is %s's of %s, put aside at %s",
				plural(len(aside), "return"), aside[0].Minion, cmp.Or(aside[0].JID, "no job"), aside[0].Since.UTC().Format(time.RFC3339)),
			Hint: hint,
		}
	}
	return fine
}

// UnansweredReturns implements admin.ReturnKeeper.
func (d *Daemon) UnansweredReturns(context.Context) (adminapi.UnansweredReturns, error) {
	s, err := d.service()
	if err != nil {
		return adminapi.UnansweredReturns{}, err
	}
	list, full := s.returns.Unanswered()
	out := adminapi.UnansweredReturns{From: string(d.id), Full: full, Returns: []adminapi.UnansweredReturn{}}
	for _, one := range list[:min(len(list), adminapi.MaxUnansweredListed)] {
		out.Returns = append(out.Returns, unansweredReturn(one))
	}
	out.More = len(list) - len(out.Returns)
	return out, nil
}

func unansweredReturn(u returns.Unanswered) adminapi.UnansweredReturn {
	return adminapi.UnansweredReturn{
		ID: u.ID, Minion: u.Minion, JID: u.JID, Function: u.Fun, Received: u.Received, Since: u.Since, Bytes: u.Bytes, Tries: u.Tries,
		Next: u.Next, Error: u.Err,
	}
}

// RetryReturns implements admin.ReturnKeeper.
func (d *Daemon) RetryReturns(context.Context) (adminapi.RetriedReturns, error) {
	s, err := d.service()
	if err != nil {
		return adminapi.RetriedReturns{}, err
	}
	due, damaged := s.returns.Again()
	return adminapi.RetriedReturns{From: string(d.id), Returns: due, Damaged: damaged, MasterDown: !s.masterServes()}, nil
}

// DropReturn implements admin.ReturnKeeper.
func (d *Daemon) DropReturn(_ context.Context, id string) (adminapi.UnansweredReturn, error) {
	s, err := d.service()
	if err != nil {
		return adminapi.UnansweredReturn{}, err
	}
	one, err := s.returns.Drop(id)
	if errors.Is(err, returns.ErrNotAside) {
		return adminapi.UnansweredReturn{}, adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl returns list shows those of this node",
			"no return with the id %q was put aside here", id)
	}
	return unansweredReturn(one), err
}

// IDs implements jobcache.Keys.
func (k *keyView) IDs() []string {
	var ids []string
	k.m.cons.View().Keys(func(key state.Key) bool {
		if key.State == state.KeyAccepted {
			ids = append(ids, key.ID)
		}
		return true
	})
	return ids
}
