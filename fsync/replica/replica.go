package replica

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/backoff"
	"saltclusterd/durable"
	"saltclusterd/fsync/feed"
	"saltclusterd/gossip/node"
)

// Spec is what makes a store of a Replica: keys of type K name items, S sends to one member, M is a body that was read.
type Spec[K comparable, S feed.Sender[K], M any] struct {
	Name     string // of what is replicated, for errors
	Off      string // why nothing is replicated; empty: it is
	OffLevel slog.Level
	Pace     Pace // defaults
	Table    Table
	Pull     Puller[K]

	// Receiving: peers send a body of at most MaxBody bytes to Path. Take acts on it, and returns the answer. AnswersOff:
	// Take is called even while nothing is replicated here; otherwise the answer is empty then.
	Path       string
	MaxBody    int64
	Decode     func(body []byte) (M, error)
	Take       func(from node.ID, m M) (answer []byte, err error)
	AnswersOff bool

	// Sending, see feed.Config.
	NewSender func(*Peer[K]) S
	After     func(changed bool)
	Covers    bool
	Limit     int
	Batch     int

	// Tasks run between Open and Close. Settle is called by Close after them; it returns when nothing that a peer sent
	// is being written any more. It may be nil.
	Tasks  []func(ctx context.Context)
	Settle func()

	Failures *prometheus.CounterVec // by operation
	Fault    string                 // is logged about an operation that failed
}

// Table is a store's table: a file in the state directory.
type Table struct {
	File   string
	Load   func(raw []byte) error // takes it in; nil: there is none
	Encode func() ([]byte, error)
	// Rest, where set, is how many times as long as a write the store pauses before the next.
	Rest       time.Duration
	Disposable bool   // the store does without one that a newer version has written
	Lost       string // is logged when it cannot be read
}

// Replica is the part of a store that does not depend on what is replicated. Create it with New.
type Replica[K comparable, S feed.Sender[K], M any] struct {
	cfg  Config
	spec Spec[K, S, M]
	feed *feed.Feed[K, S]

	changes atomic.Int64  // of the table, not yet saved
	scanned chan struct{} // closed by Scanned
	ready   chan struct{} // closed when peers may be sent to: after that, and Config.Hold
	bodies  chan struct{} // bounds requests in memory

	mu     sync.Mutex      // guards run
	run    context.Context // ends with Close; nil before Open
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

const (
	// maxBodies is how many requests may be in memory at a time.
	maxBodies = 4
	// maxTable bounds the file of a table, in bytes.
	maxTable  = 256 << 20
	tableMode = 0o600
)

// New checks the configuration and fills in what it lacks; it touches nothing.
func New[K comparable, S feed.Sender[K], M any](cfg *Config, spec Spec[K, S, M]) (*Replica[K, S, M], error) {
	if err := cfg.fill(spec.Name, spec.Pace); err != nil {
		return nil, err
	}
	r := &Replica[K, S, M]{
		cfg: *cfg, spec: spec, scanned: make(chan struct{}), ready: make(chan struct{}),
		bodies: make(chan struct{}, maxBodies),
	}
	r.feed = feed.New(feed.Config[K, S]{
		Members: cfg.Members, Ready: r.ready, After: spec.After, Covers: spec.Covers, Limit: spec.Limit, Batch: spec.Batch,
		New: func(l *feed.Line[K]) S { return spec.NewSender(&Peer[K]{Line: l, call: r.call, failed: r.sendFailed}) },
		Timing: feed.Timing{Settle: cfg.Pace.Settle, Linger: cfg.Pace.Linger, Digest: cfg.Pace.Digest, Retry: cfg.Pace.Retry,
			RetryMax: cfg.Pace.RetryMax},
	})
	return r, nil
}

// Feed is what sends to the other members.
func (r *Replica[K, S, M]) Feed() *feed.Feed[K, S] { return r.feed }

// Off says why nothing is replicated; empty when it is.
func (r *Replica[K, S, M]) Off() string { return r.spec.Off }

// Open reads the table and starts the tasks. It does not wait for the first scan.
func (r *Replica[K, S, M]) Open(ctx context.Context) error {
	if r.spec.Off != "" {
		r.cfg.Logger.Log(ctx, r.spec.OffLevel, "files are not replicated", "store", r.spec.Name, "reason", r.spec.Off)
		return nil
	}
	if err := os.MkdirAll(r.cfg.StateDir, 0o700); err != nil {
		return fmt.Errorf("open %s: %w", r.spec.Name, err)
	}
	if err := r.loadTable(); err != nil {
		if !r.spec.Table.Disposable && errors.Is(err, ErrNewer) {
			return fmt.Errorf("open %s: %w", r.spec.Name, err)
		}
		r.cfg.Logger.Warn(r.spec.Table.Lost, "store", r.spec.Name, "err", err)
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.mu.Lock()
	r.run, r.cancel = run, cancel
	r.mu.Unlock()
	r.feed.Open(run, r.cfg.Changed(run))
	for _, task := range append(r.spec.Tasks, r.keepSaving, r.awaitReady) {
		r.Go(task)
	}
	return nil
}

// Close stops, waits and saves the table. Afterwards nothing is written, whatever peers send.
func (r *Replica[K, S, M]) Close() error {
	if r.cancel == nil {
		return nil
	}
	r.cancel()
	r.feed.Close()
	r.wg.Wait()
	if r.spec.Settle != nil {
		r.spec.Settle()
	}
	return r.saveTable()
}

// Go runs a task that ends with Close.
func (r *Replica[K, S, M]) Go(task func(ctx context.Context)) { r.wg.Go(func() { task(r.run) }) }

// errClosed says that nothing is written yet.
var errClosed = errors.New("not open")

// Closed says why nothing may be written to the master's files; nil between Open and Close.
func (r *Replica[K, S, M]) Closed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.run == nil {
		return errClosed
	}
	return r.run.Err()
}

// SetScanned says that the first scan is done. It is called once.
func (r *Replica[K, S, M]) SetScanned() { close(r.scanned) }

// Scanned says whether the first scan is done.
func (r *Replica[K, S, M]) Scanned() bool {
	select {
	case <-r.scanned:
		return true
	default:
		return false
	}
}

// Ready says whether peers may be sent to: the first scan is done, and this node has caught up.
func (r *Replica[K, S, M]) Ready() bool {
	select {
	case <-r.ready:
		return true
	default:
		return false
	}
}

// Serves says whether this node is open and knows what it has.
func (r *Replica[K, S, M]) Serves() bool { return r.Scanned() && r.Closed() == nil }

// awaitReady lets the senders begin.
func (r *Replica[K, S, M]) awaitReady(ctx context.Context) {
	for _, event := range []<-chan struct{}{r.scanned, r.cfg.Hold} {
		if event == nil {
			continue
		}
		select {
		case <-event:
		case <-ctx.Done():
			return
		}
	}
	close(r.ready)
}

// Changed says that the table is to be saved. It is called after the change.
func (r *Replica[K, S, M]) Changed() { r.changes.Add(1) }

func (r *Replica[K, S, M]) tablePath() string {
	return filepath.Join(r.cfg.StateDir, r.spec.Table.File)
}

func (r *Replica[K, S, M]) loadTable() error {
	info, err := os.Stat(r.tablePath())
	if errors.Is(err, fs.ErrNotExist) {
		return r.spec.Table.Load(nil)
	}
	if err == nil && info.Size() > maxTable {
		err = errTooLarge
	}
	var raw []byte
	if err == nil {
		raw, err = os.ReadFile(r.tablePath())
	}
	if err == nil {
		err = r.spec.Table.Load(raw)
	}
	if err != nil {
		return fmt.Errorf("read table of %s: %w", r.spec.Name, err)
	}
	return nil
}

// keepSaving saves the table soon after changes.
func (r *Replica[K, S, M]) keepSaving(ctx context.Context) {
	for pause := r.cfg.Pace.Save; backoff.Sleep(ctx, pause); {
		began := time.Now()
		if err := r.saveTable(); err != nil {
			r.Fail("save", err)
		}
		pause = max(r.cfg.Pace.Save, r.spec.Table.Rest*time.Since(began))
	}
}

// saveTable makes the table appear whole or not at all, if it has changed.
func (r *Replica[K, S, M]) saveTable() error {
	n := r.changes.Load()
	if n == 0 {
		return nil
	}
	content, err := r.spec.Table.Encode()
	if err == nil {
		err = durable.WriteFile(r.tablePath(), content, tableMode)
	}
	if err != nil {
		return fmt.Errorf("save table of %s: %w", r.spec.Name, err)
	}
	r.changes.Add(-n)
	return nil
}

// Fail counts and logs what could not be done.
func (r *Replica[K, S, M]) Fail(op string, err error, attrs ...any) {
	r.spec.Failures.WithLabelValues(op).Inc()
	if !errors.Is(err, context.Canceled) {
		r.cfg.Logger.Warn(r.spec.Fault, append([]any{"op", op, "err", err}, attrs...)...)
	}
}
