package native

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

// mineStore implements mines.Store.
type mineStore struct{ *datacache.Store }

// Change implements mines.Store.
func (m mineStore) Change(ctx context.Context, id string, edit datacache.Edit, settle time.Duration) error {
	err := m.Store.Change(ctx, id, edit, settle)
	if errors.Is(err, datacache.ErrNotHere) {
		return fmt.Errorf("%w: %w", mines.ErrNotHere, err)
	}
	return err
}

// useMines chooses how requests about mines are answered beside a master of that configuration.
func (s *Service) useMines(master *localmaster.Config) {
	set, reason := s.mineSettings(master)
	if reason != "" {
		s.c.Logger.Info("requests about mines are left to the salt-master", "reason", reason)
	}
	s.Mines.Use(set, reason)
	s.mineOptions = master
}

func (s *Service) mineSettings(master *localmaster.Config) (*mines.Settings, string) {
	if reason := s.c.MineStore.Off(); reason != "" {
		return nil, reason
	}
	if !s.c.NativeReturns {
		return nil, "the option native_returns is off"
	}
	if master.CacheDir != s.c.Master.CacheDir {
		return nil, "the master has another cachedir than when saltclusterd was started"
	}
	return mines.Native(master, master.Version.Major)
}

// followMines follows a configuration of the master. Modules of the site are not options, so it also asks whether
// mines are answered natively.
func (s *Service) followMines(now *localmaster.Config) {
	set, reason := s.mineSettings(now)
	native, before := s.Mines.Native("_mine")
	if native == (set != nil) && before == reason && mines.Same(now, s.mineOptions) {
		return
	}
	s.useMines(now)
}

// ServedMines are the mines while this node's cachedir is the master's (sidecar.Mines).
type ServedMines struct{ Service *Service }

// Takes implements sidecar.Mines.
func (m ServedMines) Takes(cmd string) bool {
	return m.Service.Mines.Takes(cmd) && m.Service.c.MinesCurrent()
}

// Answer implements sidecar.Mines.
func (m ServedMines) Answer(ctx context.Context, cmd, minion string, load []byte, finish func([]byte)) error {
	return m.Service.Mines.Answer(ctx, cmd, minion, load, finish)
}

// minePaths describes how requests about mines are answered.
func (s *Service) minePaths() (out []adminapi.ReturnPath) {
	for _, cmd := range mines.Commands() {
		ok, reason := s.Mines.Native(cmd)
		out = append(out, newPath(cmd, ok, reason))
	}
	return out
}

// newPath describes how a command is answered; reason says why not natively.
func newPath(cmd string, native bool, reason string) adminapi.ReturnPath {
	if native {
		return adminapi.ReturnPath{Command: cmd, Path: adminapi.PathNative}
	}
	return adminapi.ReturnPath{Command: cmd, Path: adminapi.PathMaster, Reason: reason}
}
