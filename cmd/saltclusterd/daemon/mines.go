package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"saltclusterd/fsync/datacache"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/mines"
)

// buildMines makes what answers requests about mines without the local master.
func (s *service) buildMines() (err error) {
	d := s.m.d
	s.mined, err = mines.New(mines.Config{Store: mineStore{s.mines}, Keys: s.keys, Settle: mineSettle, Logger: d.log, Registerer: d.reg})
	if err == nil {
		s.useMines(d.master)
	}
	return err
}

// mineStore implements mines.Store.
type mineStore struct{ *datacache.Store }

func (m mineStore) Change(ctx context.Context, id string, edit datacache.Edit, settle time.Duration) error {
	err := m.Store.Change(ctx, id, edit, settle)
	if errors.Is(err, datacache.ErrNotHere) {
		return fmt.Errorf("%w: %w", mines.ErrNotHere, err)
	}
	return err
}

// useMines follows a configuration of the master.
func (s *service) useMines(master *localmaster.Config) {
	set, reason := s.mineSettings(master)
	if reason != "" {
		s.m.d.log.Info("requests about mines are left to the salt-master", "reason", reason)
	}
	s.mined.Use(set, reason)
	s.mineOptions = master
}

func (s *service) mineSettings(master *localmaster.Config) (*mines.Settings, string) {
	d := s.m.d
	if reason := s.mines.Off(); reason != "" {
		return nil, reason
	}
	if !d.cfg.Salt.NativeReturns {
		return nil, "the option native_returns is off"
	}
	if master.CacheDir != d.master.CacheDir {
		return nil, "the master has another cachedir than when saltclusterd was started"
	}
	return mines.Native(master, master.Version.Major)
}

// lookAtMines follows the master's configuration, which it reads when it starts.
func (s *service) lookAtMines(now *localmaster.Config) {
	set, reason := s.mineSettings(now) // the site's own modules are no options
	native, before := s.mined.Native("_mine")
	if native == (set != nil) && before == reason && mines.Same(now, s.mineOptions) {
		return
	}
	s.useMines(now)
}

// answeredMines are the requests about mines that this node answers while its cachedir is the master's (sidecar.Mines).
type answeredMines struct{ s *service }

// Takes implements sidecar.Mines.
func (a answeredMines) Takes(cmd string) bool {
	return a.s.mined.Takes(cmd) && !a.s.m.d.migration.MasterOutdated()
}

// Answer implements sidecar.Mines.
func (a answeredMines) Answer(ctx context.Context, cmd, minion string, load []byte, finish func([]byte)) error {
	return a.s.mined.Answer(ctx, cmd, minion, load, finish)
}

// minePaths describes who answers requests about mines.
func (s *service) minePaths() (out []adminapi.ReturnPath) {
	for _, cmd := range mines.Commands() {
		path := adminapi.ReturnPath{Command: cmd, Path: adminapi.PathNative}
		if ok, reason := s.mined.Native(cmd); !ok {
			path.Path, path.Reason = adminapi.PathMaster, reason
		}
		out = append(out, path)
	}
	return out
}
