package native

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/fsync/datacache"
	"saltclusterd/sidecar/events"
	"saltclusterd/sidecar/fileserve"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/mines"
	"saltclusterd/sidecar/returns"
)

// Config is what a Service needs.
type Config struct {
	Master        *localmaster.Config // as saltclusterd started with it
	NativeReturns bool                // the option native_returns
	NativeFiles   bool                // the option cluster_native_files

	Returns    returns.Config   // without Mode, HoldBack, Behind, Logger and Registerer
	JobCache   jobcache.Config  // without what depends on the master's configuration, Logger and Register
	MineStore  *datacache.Store // mines of all masters
	MineKeys   mines.Keys
	MineSettle time.Duration // how long an answer waits for the other nodes to have a mine

	FilesCurrent  func() bool                  // the files of this host are those that the master serves
	MinesCurrent  func() bool                  // its cachedir is the one that the master uses
	MasterProblem func(context.Context) string // what is wrong with the master; empty: nothing

	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Service is what this node does natively.
type Service struct {
	Returns *returns.Service
	Events  *events.Service
	Files   *fileserve.Server
	Mines   *mines.Service

	c Config

	// The configurations of the master that the paths were chosen by.
	returnOptions, fileOptions, mineOptions *localmaster.Config
}

// New returns a Service that works by the configuration that saltclusterd started with. Its parts are not open yet.
func New(c Config) (_ *Service, err error) {
	s := &Service{c: c, returnOptions: c.Master}
	mode, err := s.returnMode(c.Master)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			closeMode(mode)
		}
	}()
	s.Events, err = events.New(events.Config{
		Bus: c.Returns.Bus, Mode: s.eventMode(c.Master, mode), Behind: maxBehind(c.Master),
		Logger: c.Logger, Registerer: c.Registerer,
	})
	if err != nil {
		return nil, err
	}
	cfg := c.Returns
	cfg.Mode, cfg.HoldBack, cfg.Behind = mode, holdBack(c.Master.Version.Major), maxBehind(c.Master)
	cfg.Logger, cfg.Registerer = c.Logger, c.Registerer
	if s.Returns, err = returns.New(cfg); err != nil {
		return nil, err
	}
	s.Files = fileserve.New(fileserve.Config{Logger: c.Logger, Registerer: c.Registerer})
	s.useFiles(c.Master)
	s.Mines, err = mines.New(mines.Config{
		Store: mineStore{c.MineStore}, Keys: c.MineKeys, Settle: c.MineSettle, Logger: c.Logger, Registerer: c.Registerer,
	})
	if err != nil {
		return nil, err
	}
	s.useMines(c.Master)
	return s, nil
}

// Use follows a configuration that the master has started with.
func (s *Service) Use(now *localmaster.Config) {
	s.followFiles(now)
	s.followMines(now)
	s.followReturns(now)
}

// LeaveToMaster leaves everything that depends on the master's options to the master, which has started with options
// that cannot be read here: for example one of its files is closed to its own user.
func (s *Service) LeaveToMaster(err error) {
	reason := "its options cannot be read: " + err.Error()
	s.Files.Use(nil, reason)
	s.Mines.Use(nil, reason)
	s.Events.Use(events.Mode{Reason: reason})
	mode := s.storeMode(s.returnOptions)
	for _, cmd := range returnCommands {
		mode.Reasons[cmd] = reason
	}
	s.Returns.Use(mode)
}

var fine = health.Result{Level: health.OK}
