package hostile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/play"
)

// Config of a run.
type Config struct {
	Seed   uint64
	For    time.Duration // how long requests are made
	Only   int           // this request alone, over and over; -1: all
	Rate   int           // requests per second at most
	Talk   int           // requests at a time
	Memory int64         // bytes that a saltclusterd may grow by
	Target string        // glob of the other minions
	Skip   []string      // invariants that are counted and not judged
	Revoke bool          // let the minion revoke its own key at the end
	Logf   func(format string, args ...any)
}

// Default is what "make fuzz-live" runs without arguments.
func Default() Config {
	return Config{Seed: 1, For: 5 * time.Minute, Only: -1, Rate: 60, Talk: 8, Memory: 256 << 20, Target: "min*",
		Logf: func(string, ...any) {}}
}

// world is a run.
type world struct {
	cfg     Config
	cluster *lab.Cluster
	scene   *scene
	book    *book
	who     *attacker
	secrets []string
}

// Run attacks a cluster that works and judges what came of it. An error means that it could not be tried.
func Run(ctx context.Context, c *lab.Cluster, cfg Config) (_ *Report, err error) {
	w := &world{cfg: cfg, cluster: c, book: newBook(cfg.Seed, cfg.Skip)}
	if err := w.prepare(ctx); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	defer w.who.dialer.Close()
	if err := w.attack(ctx); err != nil {
		return nil, err
	}
	return w.book.report(), nil
}

// prepare makes the scene: two minions with accepted keys, of which one's token is known to the other, and something to
// find.
func (w *world) prepare(ctx context.Context) error {
	host := w.cluster.Minions[0].Host()
	id := fmt.Sprintf("%s%08x", ownPrefix, uint32(w.cfg.Seed))
	m, err := play.New(host, id)
	if err != nil {
		return err
	}
	robbed, err := play.New(host, id+"-robbed")
	if err != nil {
		return err
	}
	for _, p := range []*play.Minion{m, robbed} {
		if err := w.accept(ctx, p.ID, p.PublicText()); err != nil {
			return err
		}
	}
	spare, err := play.New(host, "spare")
	if err != nil {
		return err
	}
	w.scene = &scene{seed: w.cfg.Seed, own: id, others: w.cluster.IDs(), token: robbed.Token(), pub: spare.PublicText(),
		outside: filepath.Join(w.cluster.Lab.Dir(), "outside")}
	w.who = &attacker{minion: m}
	for _, n := range w.cluster.Nodes {
		w.scene.nodes = append(w.scene.nodes, n.Name)
		w.who.addrs = append(w.who.addrs, n.Addr)
	}
	if w.who.dialer, err = host.NewDialer(); err != nil {
		return err
	}
	if err := w.hide(); err != nil {
		return err
	}
	if err := w.publish(ctx); err != nil {
		return err
	}
	return w.who.accepted(ctx)
}

// hide puts secrets where no minion must get them from, and remembers those that are there anyway.
func (w *world) hide() error {
	found := "what-stands-outside-" + w.cluster.Lab.ID()
	if err := os.MkdirAll(w.scene.outside, 0o777); err != nil {
		return err
	}
	w.secrets = []string{found, lab.Secret, "PRIVATE KEY"}
	return os.WriteFile(filepath.Join(w.scene.outside, canary), []byte(found+"\n"), 0o644)
}

// jid is how masters name jobs, with the process behind it where unique_jid is set.
var jid = regexp.MustCompile(`^20[0-9]{18}(_[0-9]+)?$`)

// publish makes a few real jobs, so that the minion has some to talk about.
func (w *world) publish(ctx context.Context) error {
	for _, n := range w.cluster.Nodes {
		res, err := n.Master.Run(ctx, "salt", "--async", w.cfg.Target, "test.ping")
		if err != nil {
			return err
		}
		for f := range strings.FieldsSeq(res.Stdout) {
			if jid.MatchString(f) {
				w.scene.jids = append(w.scene.jids, f)
			}
		}
	}
	if len(w.scene.jids) == 0 {
		return fmt.Errorf("no job was published")
	}
	return nil
}

// attack is the run itself, between two looks at everything.
func (w *world) attack(ctx context.Context) error {
	before, err := w.look()
	if err != nil {
		return err
	}
	for _, n := range w.cluster.Nodes {
		stop, err := w.listen(ctx, n)
		if err != nil {
			return err
		}
		defer stop()
	}
	watch, stopWatching := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { w.ping(watch) })
	watching.Go(func() { w.measure(watch, before.lives) })
	if w.cfg.Only < 0 {
		watching.Go(func() { w.subscribe(watch) })
	}
	w.talk(ctx)
	stopWatching()
	watching.Wait()
	if err := w.settle(ctx); err != nil {
		return err
	}
	return w.judge(ctx, before)
}

// talk says requests until the time is over, so many at a time.
func (w *world) talk(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.For)
	defer cancel()
	var next atomic.Int64
	pace := time.NewTicker(time.Second / time.Duration(max(w.cfg.Rate, 1)))
	defer pace.Stop()
	var talking sync.WaitGroup
	for range max(w.cfg.Talk, 1) {
		talking.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-pace.C:
				}
				n := int(next.Add(1)) - 1
				if w.cfg.Only >= 0 {
					n = w.cfg.Only
				}
				w.say(ctx, w.scene.request(n))
			}
		})
	}
	talking.Wait()
}

func (w *world) say(ctx context.Context, r *Request) {
	a := w.who.say(ctx, r)
	w.book.said(r, a)
	for _, s := range w.secrets {
		if strings.Contains(string(a.plain), s) {
			w.book.violated("secrets", fmt.Sprintf("%s%dz", markPrefix(w.cfg.Seed), r.N), "the answer to %s holds %q", r,
				clip(s))
		}
	}
	if a.outcome == "bad load" && !slices.Contains(r.Twists, "envelope") {
		_ = w.who.freshen(ctx)
	}
}
