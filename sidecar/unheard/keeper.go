package unheard

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// settle is how long after the subscription it is looked what was missed. By then the master has sent what it saved before.
	settle = 3 * time.Second
	// sent is how long a master takes at most to send what it has saved: what was saved later than that before the look may still come.
	sent = 2 * time.Second
)

// Config is what a Keeper needs.
type Config struct {
	Ledger   *Ledger
	CacheDir string // cachedir of the master
	Major    int    // its version
	MasterID string // master_id
	Off      func() string
	Patience func() time.Duration     // how long a command line waits for its job
	Publish  func(plain []byte) error // to all minions, as if the master had sent it now
	Now      func() time.Time
	Logger   *slog.Logger
	// Registerer may be nil.
	Registerer prometheus.Registerer
}

// Keeper looks after each subscription for what was missed. What it does not know yet it is told with Heard.
type Keeper struct {
	cfg       Config
	connected chan struct{}
	published prometheus.Counter

	mu    sync.Mutex
	given map[string]time.Time // what was published by this

	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// New returns a keeper that does nothing before Open but note what is heard.
func New(cfg Config) *Keeper {
	k := &Keeper{
		cfg: cfg, connected: make(chan struct{}, 1), given: map[string]time.Time{},
		published: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_unheard_jobs_total",
			Help: "Jobs of the local salt-master that it published while nobody listened to it, and that were published when somebody did.",
		}),
	}
	if cfg.Registerer != nil {
		cfg.Registerer.MustRegister(k.published)
	}
	return k
}

// Open opens the ledger and begins to look. Without a ledger what earlier processes have not heard stays lost: that is no error.
func (k *Keeper) Open(ctx context.Context) error {
	if err := k.cfg.Ledger.Open(); err != nil {
		k.cfg.Logger.Warn("jobs that the salt-master publishes while saltclusterd is down will not be published", "err", err)
	}
	ctx, k.cancel = context.WithCancel(context.WithoutCancel(ctx))
	k.wg.Go(func() { k.run(ctx) })
	return nil
}

// Close ends it.
func (k *Keeper) Close() error {
	if k.cancel != nil {
		k.cancel()
	}
	k.wg.Wait()
	return k.cfg.Ledger.Close()
}

// Heard notes a job that a master has published, whoever that was. It is to be called before anybody else hears of the job.
func (k *Keeper) Heard(jid string) {
	if err := k.cfg.Ledger.Note(jid); err != nil {
		k.cfg.Logger.Warn("jobs that the salt-master publishes while saltclusterd is down will not be published", "err", err)
	}
}

// Connected says that what the master publishes from now on is heard.
func (k *Keeper) Connected() {
	select {
	case k.connected <- struct{}{}:
	default:
	}
}

// Gave reports whether a publication that the master has just sent was published before by this keeper.
func (k *Keeper) Gave(jid string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, gave := k.given[jid]
	return gave
}

func (k *Keeper) run(ctx context.Context) {
	look := time.NewTimer(settle)
	look.Stop()
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.connected:
			look.Reset(settle)
		case <-look.C:
			k.publish(ctx)
		}
	}
}

// publish publishes what was missed.
func (k *Keeper) publish(ctx context.Context) {
	if k.cfg.Off() != "" {
		return
	}
	now := k.cfg.Now()
	since := now.Add(-k.cfg.Patience())
	jobs, err := listSaved(ctx, k.cfg.CacheDir, since, now.Add(-sent))
	if err != nil {
		k.cfg.Logger.Warn("not looked for jobs that were published while saltclusterd did not listen", "err", err)
	}
	for _, j := range jobs {
		if ctx.Err() != nil {
			return
		}
		if has, from, err := k.cfg.Ledger.Has(j.jid); err != nil || has || !j.at.After(from) {
			continue
		}
		k.give(j, now)
	}
}

func (k *Keeper) give(j job, now time.Time) {
	log := k.cfg.Logger.With("jid", j.jid)
	plain, err := master{k.cfg.Major, k.cfg.MasterID}.publication(j.load)
	if errors.Is(err, errNotPublished) {
		return
	}
	if err != nil {
		log.Warn("job that the salt-master published while saltclusterd did not listen is lost", "err", err)
		return
	}
	k.mu.Lock()
	for jid, at := range k.given {
		if now.Sub(at) > time.Hour {
			delete(k.given, jid)
		}
	}
	k.given[j.jid] = now
	k.mu.Unlock()
	if err := k.cfg.Publish(plain); err != nil {
		log.Error("job that the salt-master published while saltclusterd did not listen is lost", "err", err)
		return
	}
	k.published.Inc()
	log.Info("job published that the salt-master published while saltclusterd did not listen", "age", now.Sub(j.at).Round(time.Millisecond))
}
