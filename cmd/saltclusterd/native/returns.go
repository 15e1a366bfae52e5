package native

import (
	"time"

	"saltclusterd/sidecar/events"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/returns"
)

// returnCommands are the commands by which minions and syndics send returns.
var returnCommands = []string{"_return", "_syndic_return"}

// returnMode says which returns are taken natively beside a master of that configuration.
func (s *Service) returnMode(master *localmaster.Config) (returns.Mode, error) {
	mode := s.storeMode(master)
	for _, cmd := range returnCommands {
		if ok, reason := jobcache.Native(master, master.Version.Major, cmd); !ok {
			mode.Reasons[cmd] = reason
		} else if !s.c.NativeReturns {
			mode.Reasons[cmd] = "the option native_returns is off"
		}
	}
	for cmd, reason := range mode.Reasons {
		s.c.Logger.Info("returns are left to the salt-master", "cmd", cmd, "reason", reason)
	}
	var err error
	if len(mode.Reasons) < len(returnCommands) {
		mode.Cache, err = s.newJobCache(master)
	}
	if err != nil {
		closeMode(mode)
	}
	return mode, err
}

// closeMode closes what is open of a mode that is not used.
func closeMode(mode returns.Mode) {
	if mode.Disk != nil {
		_ = mode.Disk.Close()
	}
	if mode.Cache != nil {
		_ = mode.Cache.Close()
	}
}

// storeMode is the part of a mode that says how a master of that configuration stores returns. It is empty where they
// are not stored as files.
func (s *Service) storeMode(master *localmaster.Config) returns.Mode {
	mode := returns.Mode{Reasons: map[string]string{}}
	if master.Text("master_job_cache") != "local_cache" {
		return mode
	}
	disk := jobcache.NewSyncer(master.CacheDir)
	mode.Disk, mode.Takes = disk, disk.Takes
	mode.Stored = func(jid, minion string) bool {
		return jobcache.Stored(master.CacheDir, master.Text("hash_type"), jid, minion)
	}
	mode.Mend = func(jid, minion string) {
		removed, err := jobcache.Mend(master.CacheDir, master.Text("hash_type"), jid, minion)
		if removed || err != nil {
			s.c.Logger.Warn("half-written return of a killed salt-master removed", "jid", jid, "minion", minion, "err", err)
		}
	}
	return mode
}

// eventMode says whether events are fired natively beside a master of that configuration. It shares the planner of
// returns.
func (s *Service) eventMode(master *localmaster.Config, mode returns.Mode) events.Mode {
	if ok, reason := jobcache.Native(master, master.Version.Major, "_minion_event"); !ok {
		return events.Mode{Reason: reason}
	}
	if !s.c.NativeReturns {
		return events.Mode{Reason: "the option native_returns is off"}
	}
	if mode.Cache == nil {
		return events.Mode{Reason: "returns are left to the salt-master"}
	}
	return events.Mode{Planner: mode.Cache}
}

// followReturns follows a configuration of the master. Modules of the site are not options, so it also asks
// whether returns are native.
func (s *Service) followReturns(now *localmaster.Config) {
	same := true
	for _, cmd := range returnCommands {
		is, _ := s.Returns.Native(cmd)
		can, _ := jobcache.Native(now, now.Version.Major, cmd)
		same = same && is == (can && s.c.NativeReturns)
	}
	if same && jobcache.Same(now, s.returnOptions) {
		return
	}
	mode, err := s.returnMode(now)
	if err != nil {
		s.c.Logger.Error("returns are taken as before", "err", err)
		return
	}
	s.returnOptions = now
	s.Events.Use(s.eventMode(now, mode))
	s.Returns.Use(mode)
}

func (s *Service) newJobCache(master *localmaster.Config) (*jobcache.Cache, error) {
	owner, err := master.Owner()
	if err != nil {
		return nil, err
	}
	cfg := s.c.JobCache
	cfg.Options, cfg.Version, cfg.CacheDir = master, master.Version, master.CacheDir
	cfg.UID, cfg.GID, cfg.Logger, cfg.Register = owner.UID, owner.GID, s.c.Logger, s.c.Registerer
	return jobcache.New(cfg)
}

// holdBack is how long after the publication of a job its returns are fired at the earliest.
func holdBack(major int) time.Duration {
	if major == 3007 {
		return 100 * time.Millisecond
	}
	return 0
}

// maxBehind is how many events a subscriber of the master's bus may be behind before the master disconnects it; 0: any
// number. Masters before 3008 keep for each subscriber what it has not read.
func maxBehind(master *localmaster.Config) int {
	if master.Version.Major < 3008 {
		return 0
	}
	return int(max(master.Int("pub_server_write_queue_size"), 0))
}
