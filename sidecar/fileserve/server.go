package fileserve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
)

// Limits bound what a Server keeps in memory.
type Limits struct {
	Chunks int64 // bytes of answers with chunks
	Lists  int64 // bytes of lists of environments
	Hashes int64 // bytes of hashes
}

// DefaultLimits are for a node that serves thousands of minions.
var DefaultLimits = Limits{Chunks: 32 << 20, Lists: 32 << 20, Hashes: 8 << 20}

const (
	defaultTimeout = 2 * time.Second
	diskSlots      = 32 // threads that may wait for a disk

	// maxAnswers bounds the bytes of answers between their making and their sealing.
	maxAnswers = 64 << 20
	// largeReply is from what size on the sealing of an answer counts as work.
	largeReply = 32 << 10
	// attempts at a file that is replaced in the very moment.
	attempts = 3
)

// Config is what a Server needs. All of it may be left out.
type Config struct {
	Limits      Limits           // zero: DefaultLimits
	SlotTimeout time.Duration    // for a disk that is busy; then requests are forwarded. Zero: two seconds
	Now         func() time.Time // nil: time.Now
	Logger      *slog.Logger     // nil: slog.Default
	Registerer  prometheus.Registerer
}

// mode is what is served, or why nothing is.
type mode struct {
	set    *Settings
	reason string
}

// Server answers requests for files. Safe for concurrent use; it holds no goroutines.
type Server struct {
	cfg     Config
	log     *slog.Logger
	metrics *metrics
	mode    atomic.Pointer[mode]
	forgets atomic.Uint64

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	makers *makers

	disk, cpu      slots
	hashers, quick slots               // of large files, of all others
	memory         *semaphore.Weighted // of answers that are being made

	chunks    *lru[chunkKey, []byte]
	reading   flights[chunkKey, []byte]
	hashes    *lru[hashKey, string]
	hashing   flights[hashKey, string]
	envs      *lru[string, *listed]
	listing   flights[listKey, *listed]
	transfers *transfers
}

// New returns a server that forwards everything until it is told a configuration (Use).
func New(cfg Config) *Server {
	if cfg.Limits == (Limits{}) {
		cfg.Limits = DefaultLimits
	}
	if cfg.SlotTimeout == 0 {
		cfg.SlotTimeout = defaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	procs := runtime.GOMAXPROCS(0)
	s := &Server{
		cfg: cfg, log: cfg.Logger,
		disk: make(slots, diskSlots), cpu: make(slots, procs),
		hashers: make(slots, max(1, procs/2)), quick: make(slots, procs),
		memory: semaphore.NewWeighted(maxAnswers),
		chunks: newLRU[chunkKey, []byte](cfg.Limits.Chunks, nil),
		hashes: newLRU[hashKey, string](cfg.Limits.Hashes, nil),
		envs:   newLRU[string, *listed](cfg.Limits.Lists, nil),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.makers = &makers{ctx: s.ctx}
	s.transfers = newTransfers(s.makers, s.disk, cfg.SlotTimeout)
	s.mode.Store(&mode{reason: "the salt-master's configuration is not known yet"})
	s.metrics = newMetrics(cfg.Registerer, s)
	return s
}

// Close lets go of files that are held open. Requests under way end with ErrForward.
func (s *Server) Close() error {
	s.cancel()
	s.makers.waitAll()
	s.transfers.close()
	return nil
}

// Use changes what is served from now on; without settings, reason says why everything is forwarded.
func (s *Server) Use(set *Settings, reason string) {
	s.mode.Store(&mode{set, reason})
	s.forgets.Add(1)
}

// Native says whether files are served here, and why not.
func (s *Server) Native() (ok bool, reason string) {
	m := s.mode.Load()
	return m.set != nil, m.reason
}

// Settings are those in use; nil: everything is forwarded.
func (s *Server) Settings() *Settings { return s.mode.Load().set }

// Forget drops the lists of environments. It is for callers that have changed files.
func (s *Server) Forget() { s.forgets.Add(1) }

// Takes says whether a command may be answered here.
func (s *Server) Takes(cmd string) bool { return s.mode.Load().set != nil && Is(cmd) }

// Reads says whether the load of a request for files can be read; if not, the request belongs to the salt-master and is
// counted as forwarded.
func (s *Server) Reads(cmd string, load []byte) bool {
	_, err := ParseLoad(load)
	if err != nil {
		s.metrics.countRequest(cmd, err)
	}
	return err == nil
}

// Answer makes the answer to a request of a minion and gives it to finish, once. The load is the decrypted one. It
// waits for disks, so it needs a goroutine of the caller's. With an error, which is ErrForward or wraps it, finish was
// not called and the request belongs to the salt-master.
func (s *Server) Answer(ctx context.Context, cmd, minion string, load []byte, finish func(reply []byte)) error {
	r := room{s: s}
	defer r.releaseMemory()
	reply, err := s.answerLoad(ctx, &r, cmd, minion, load)
	s.metrics.countRequest(cmd, err)
	if err != nil {
		if !errors.Is(err, ErrForward) {
			s.log.Debug("request for files forwarded", "cmd", cmd, "minion", minion, "err", err)
			err = fmt.Errorf("%w: %w", ErrForward, err)
		}
		return err
	}
	s.metrics.served.Add(float64(len(reply)))
	if len(reply) >= largeReply && s.cpu.takeSlot(ctx, hashWaits*s.cfg.SlotTimeout) == nil {
		defer s.cpu.freeSlot()
	}
	finish(reply)
	return nil
}

// room is the memory that one answer has taken.
type room struct {
	s     *Server
	bytes int64
}

// reserveMemory waits until there is memory for an answer of n bytes; the larger ones take all there is.
func (r *room) reserveMemory(ctx context.Context, n int64) error {
	if r.bytes > 0 {
		return nil
	}
	n = min(n, maxAnswers)
	if err := r.s.memory.Acquire(ctx, n); err != nil {
		return err
	}
	r.bytes = n
	return nil
}

func (r *room) releaseMemory() { r.s.memory.Release(r.bytes) }

func (s *Server) answerLoad(ctx context.Context, r *room, cmd, minion string, load []byte) (reply []byte, err error) {
	set := s.mode.Load().set
	if set == nil || s.ctx.Err() != nil {
		return nil, ErrForward
	}
	l, err := ParseLoad(load)
	if err != nil {
		return nil, err
	}
	for range attempts {
		if reply, err = s.dispatchCommand(ctx, r, set, cmd, minion, l); !errors.Is(err, errChanged) {
			break
		}
	}
	return reply, err
}

func (s *Server) dispatchCommand(ctx context.Context, r *room, set *Settings, cmd, minion string, l Load) ([]byte,
	error) {
	switch cmd {
	case "_serve_file":
		return s.serveFile(ctx, r, set, minion, l)
	case "_file_hash", "_file_hash_and_stat":
		return s.hashOf(ctx, set, l, cmd == "_file_hash_and_stat")
	case "_file_find":
		return s.findFile(ctx, set, l)
	case "_file_list", "_dir_list", "_file_list_emptydirs", "_symlink_list":
		return s.listReply(ctx, r, set, cmd, l)
	case "_file_envs":
		if !set.Alone {
			return nil, ErrForward
		}
		if !l.Back.includesRoots() {
			return emptyList, nil
		}
		return listReply(set.listEnvs()), nil
	}
	return nil, ErrForward
}

// findFile answers _file_find.
func (s *Server) findFile(ctx context.Context, set *Settings, l Load) ([]byte, error) {
	if !l.HasPath || l.Path == "" {
		return notFound, nil
	}
	if !l.HasEnv {
		l.Env = "base"
	}
	f, err := s.searchFile(ctx, set, l.Path, l.Env)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return set.missingReply(l.Path, notFound)
	}
	return foundReply(f), nil
}

// searchFile looks for a file, where disks may be slow.
func (s *Server) searchFile(ctx context.Context, set *Settings, name, env string) (*found, error) {
	if err := s.disk.takeSlot(ctx, s.cfg.SlotTimeout); err != nil {
		return nil, err
	}
	defer s.disk.freeSlot()
	return set.findFile(name, env)
}

// missingReply is the answer for a file that roots does not have, unless another backend may have it.
func (s *Settings) missingReply(name string, none []byte) ([]byte, error) {
	if !s.Alone && !isOwn(name) {
		return nil, ErrForward
	}
	return none, nil
}
