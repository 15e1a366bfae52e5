package tlsconfig

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
)

// Source has the TLS configuration in force. All methods may be called at any time.
type Source struct {
	log     *slog.Logger
	now     func() time.Time
	current atomic.Pointer[Loaded] // nil: TLS is refused

	mu      sync.Mutex
	options *Options              // nil: TLS is off or refused
	found   []localmaster.Finding // about the options
	state   string                // of the files, when they were read
	problem error                 // why the newest files are not used
}

// NewSource returns a Source without a configuration.
func NewSource(log *slog.Logger) *Source { return &Source{log: log, now: time.Now} }

// Config returns the configuration for the next connection; nil: TLS is refused. It must not be changed.
func (s *Source) Config() *tls.Config {
	if l := s.current.Load(); l != nil {
		return l.Config
	}
	return nil
}

// Use takes the option ssl of a master and reads its files. Findings about the option are logged.
func (s *Source) Use(master *localmaster.Config) {
	options, found := ReadOptions(master)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range found {
		s.log.Warn("salt-master configuration", "option", f.Option, "reason", f.Message, "hint", f.Fix)
	}
	s.options, s.found, s.state, s.problem = options, found, "", nil
	if options == nil {
		s.current.Store(nil)
		return
	}
	s.reload()
}

// reload reads the files when they have changed since they were read. After an error the configuration in force stays.
func (s *Source) reload() {
	state := s.options.fileState()
	if state == s.state {
		return
	}
	loaded, err := s.options.Load()
	if err == nil && state != s.options.fileState() {
		return // a file was replaced meanwhile: the next call reads all of them again
	}
	s.state = state
	if err != nil {
		if s.problem == nil || s.problem.Error() != err.Error() {
			s.log.Warn("TLS certificate not loaded", "err", err, "kept", s.current.Load() != nil)
		}
		s.problem = err
		return
	}
	s.problem = nil
	s.current.Store(loaded)
	s.log.Info("TLS certificate loaded", "path", s.options.CertFile, "subject", loaded.Leaf.Subject.String(),
		"serial", fmt.Sprintf("%x", loaded.Leaf.SerialNumber), "not_after", loaded.Leaf.NotAfter.UTC())
}

// fileState describes the files as far as a change shows in it.
func (o *Options) fileState() (state string) {
	files := o.Files()
	for _, dir := range o.CAPaths {
		names, _ := filepath.Glob(filepath.Join(dir, "*"))
		files = append(append(files, dir), names[:min(len(names), maxFiles)]...)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			state += file + " " + errors.Unwrap(err).Error() + "\n"
			continue
		}
		state += fmt.Sprintf("%s %d %s %v\n", file, info.Size(), info.ModTime(), sysOf(info))
	}
	return state
}

// Check reads the files again when they have changed, and says what is wrong with them. It is a health check, so that
// a file system that hangs holds up no connection. TLS never makes a node unready: minions with other transports need
// it.
func (s *Source) Check(context.Context) health.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.options == nil {
		return worst(s.found)
	}
	s.reload()
	if s.problem != nil {
		r := health.Result{Level: health.Warn, Reason: "minions with TLS are refused: " + s.problem.Error(),
			Hint: "correct the configuration; the files are read again when they change"}
		if s.current.Load() != nil {
			r.Reason = "new TLS certificates cannot be used, the previous ones are still served: " + s.problem.Error()
		}
		if errors.Is(s.problem, fs.ErrPermission) {
			r.Hint = "make that file readable for the salt-master's user, which saltclusterd runs as"
		}
		return r
	}
	l := s.current.Load()
	if l == nil { // its files are being replaced since they were named
		return health.Result{Level: health.OK}
	}
	return worst(append(l.Examine(s.now()), s.found...))
}

// worst makes a health result of the first finding that is fatal, else of the first.
func worst(found []localmaster.Finding) health.Result {
	if len(found) == 0 {
		return health.Result{Level: health.OK}
	}
	first := found[0]
	for _, f := range found {
		if f.Fatal && !first.Fatal {
			first = f
		}
	}
	return health.Result{Level: health.Warn, Reason: first.Message, Hint: first.Fix}
}
