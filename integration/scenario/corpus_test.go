//go:build integration

package scenario

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/corpus"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/integration/play"
	"saltclusterd/sidecar/eventbus"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltwire"
)

const (
	corpusAnswer  = 20 * time.Second // for one request
	corpusMutants = 300              // of each corpus
)

// What real minions asked is asked of a bare master and through saltclusterd in front of an equal one: replies, events
// and files are the same, but for what corpus.Intended lists. Then requests that no minion sends (SALTCLUSTER_RANDOM of
// them, from SALTCLUSTER_RANDOM_SEED).
func TestCorpus(t *testing.T) {
	t.Parallel()
	for _, version := range lab.Versions {
		t.Run(version, func(t *testing.T) {
			c, err := corpus.Load(version)
			labtest.Must(t, err)
			c.Requests = append(c.Requests, c.Derived()...)
			sameAsBare(t, version, c, nil, mutants(t, c))
		})
	}
}

// recordedSyndics says whose requests stand for a version's own. Under the load of the machine where they were recorded
// one of a 3008 syndic's requests timed out; after that it forwards nothing any more ("'str' object has no attribute
// 'done'" in SyndicManager._forward_events).
var recordedSyndics = map[string]string{"3008.3": "3007.15"}

// TestSyndicCorpus is the same for what a real syndic asked the master above it, without variants: rules refuse most of
// what is nearly a syndic's.
func TestSyndicCorpus(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("takes minutes; make test-corpus")
	}
	for _, version := range lab.Versions {
		t.Run(version, func(t *testing.T) {
			c, err := corpus.LoadSyndic(cmp.Or(recordedSyndics[version], version))
			labtest.Must(t, err)
			sameAsBare(t, version, c, lab.Settings{"order_masters": true}, nil)
		})
	}
}

// sameAsBare asks a bare master of a version and one behind saltclusterd, with more settings for both, what is in a
// corpus and then the variants.
func sameAsBare(t *testing.T, version string, c *corpus.Corpus, more lab.Settings, variants []corpus.Request) {
	t.Helper()
	var bare, ours *corpus.View
	l := labtest.New(t, lab.Options{})
	roots := t.TempDir()
	settings, err := corpus.Roots(roots)
	labtest.Must(t, err)
	maps.Copy(settings, more)
	began := time.Now() // stands in events, too
	asks := append(append(slices.Clone(c.Requests), variants...), last(t, c))
	var sides sync.WaitGroup // and not t.Parallel, which would wait for the end of another scenario
	for _, side := range []struct {
		name string
		view **corpus.View
	}{{"bare", &bare}, {"ours", &ours}} {
		sides.Go(func() {
			t.Run(side.name, func(t *testing.T) {
				*side.view = replay(t, newReplayed(t, l, version, side.name == "ours", settings), asks, len(c.Requests), began)
			})
		})
	}
	sides.Wait()
	if bare == nil || ours == nil {
		t.FailNow()
	}
	diffs, intended := corpus.Diff(bare, ours)
	t.Logf("%d requests of minions; %d events, %d files; intended: %v", len(c.Requests), len(bare.Events), len(bare.Files),
		intended)
	t.Logf("%d variants: %s", len(variants), kinds(variants))
	for i, d := range diffs {
		if t.Errorf("%s", d); i == 300 {
			t.Fatalf("and %d more", len(diffs)-i-1)
		}
	}
}

// mutants are requests that no minion sends.
func mutants(t *testing.T, c *corpus.Corpus) []corpus.Request {
	number := func(name string, n uint64) uint64 {
		if text := os.Getenv(name); text != "" {
			var err error
			n, err = strconv.ParseUint(text, 10, 64)
			labtest.Must(t, err)
		}
		return n
	}
	return c.Mutants(number("SALTCLUSTER_RANDOM", corpusMutants), number("SALTCLUSTER_RANDOM_SEED", 1))
}

// lastJob is the job of the last return: all that is asked before has been done when it is in the job cache and on the
// bus.
const lastJob = "20200101999999999999"

// last is a return of lastJob.
func last(t *testing.T, c *corpus.Corpus) corpus.Request {
	t.Helper()
	load, err := saltwire.AppendAny(nil, map[string]any{
		"cmd": "_return", "id": c.ID, "jid": lastJob, "fun": "test.ping", "fun_args": []any{}, "return": true, "retcode": 0,
		"success": true,
		"nonce":   "", "ts": 0, "tok": "",
	}, saltwire.Wire)
	labtest.Must(t, err)
	return corpus.Request{Cmd: "_return", Load: load}
}

// kinds counts what is different in mutants, and of what commands they are.
func kinds(mutants []corpus.Request) string {
	of, commands := map[string]int{}, map[string]int{}
	for _, m := range mutants {
		of["a field "+m.Mutation.Kind]++
		commands[m.Cmd]++
	}
	return fmt.Sprintf("%v of %v", of, commands)
}

// replayed is a master that a corpus is asked of.
type replayed struct {
	name, addr string
	master     *lab.Master
	minion     *play.Minion
}

// newReplayed starts a master, alone or behind saltclusterd.
func newReplayed(t *testing.T, l *lab.Lab, version string, behind bool, settings lab.Settings) *replayed {
	t.Helper()
	ctx := t.Context()
	name := map[bool]string{false: "bare", true: "ours"}[behind]
	h, err := l.Host(ctx, name)
	labtest.Must(t, err)
	from, err := l.Host(ctx, name+"min")
	labtest.Must(t, err)
	addr := h.Addr
	if behind {
		addr = h.Local
	}
	// What saltclusterd sets for a master is set at the bare one, too.
	m, err := h.NewMaster(version, addr, settings, lab.Settings{"master_id": "ours"})
	labtest.Must(t, err)
	minion, err := play.New(from, "corpus")
	labtest.Must(t, err)
	dir := filepath.Join(m.PKIDir(), "minions")
	labtest.Must(t, os.MkdirAll(dir, 0o700))
	labtest.Must(t, os.WriteFile(filepath.Join(dir, minion.ID), []byte(minion.PublicText()), 0o644))
	var d *lab.Daemon
	if behind {
		d, err = m.NewDaemon()
		labtest.Must(t, err)
	}
	labtest.Must(t, m.Start(ctx))
	labtest.Must(t, m.WaitReady(ctx, 3*time.Minute))
	if behind {
		labtest.Must(t, d.Start(ctx))
		labtest.Must(t, d.WaitReady(ctx, 2*time.Minute))
		labtest.Must(t, d.Bootstrap(ctx))
		labtest.Must(t, d.Serving(ctx, 2*time.Minute))
	}
	r := &replayed{name: name, addr: h.Addr, master: m, minion: minion}
	labtest.Must(t, lab.Eventually(ctx, 2*time.Minute, name+" to take the minion", func(ctx context.Context) error {
		if _, err := minion.SignIn(ctx, r.addr); err != nil {
			return err
		}
		// its workers answer, not saltclusterd in their place
		_, err := minion.Request(ctx, r.addr, "_file_envs", map[string]any{"sources": false})
		return err
	}))
	return r
}

// replay asks everything and returns what was seen.
func replay(t *testing.T, r *replayed, asks []corpus.Request, recorded int, at time.Time) *corpus.View {
	t.Helper()
	version, err := localmaster.ParseVersion("salt-master " + r.master.Version)
	labtest.Must(t, err)
	cfg, err := localmaster.LoadConfig(filepath.Join(r.master.ConfigDir, "master"), version)
	labtest.Must(t, err)
	scrub := corpus.Scrub{Jobs: corpus.JobsOf(asks), Words: map[string]string{
		r.master.Host().Dir(): "<host>", cfg.ID: "<master>", r.master.Addr: "<address>", r.addr: "<address>",
	}}
	v := &corpus.View{}
	var mu sync.Mutex
	heard := map[string]bool{}
	bus := eventbus.New(cfg, eventbus.Options{})
	labtest.Must(t, bus.Open(t.Context()))
	defer bus.Close()
	bus.Subscribe(func(tag string, data []byte) {
		mu.Lock()
		defer mu.Unlock()
		if heard[tag] = true; !slices.Contains([]string{"salt/auth"}, tag) && !isFence(tag) {
			v.Events = append(v.Events, scrub.Text(tag)+" "+scrub.Value(data))
		}
	})
	hear := func(tag string, fire func(ctx context.Context, tag string) error) {
		labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "the event "+tag, func(ctx context.Context) error {
			mu.Lock()
			have := heard[tag]
			mu.Unlock()
			if have {
				return nil
			}
			if err := fire(ctx, tag); err != nil {
				return err
			}
			return errors.New("not heard")
		}))
	}
	fence := func(n int) {
		hear(fmt.Sprintf("%s%d", fencePrefix, n),
			func(ctx context.Context, tag string) error { return bus.Fire(ctx, tag, map[string]any{}) })
	}
	fence(0)
	for i, ask := range asks {
		v.Asked = append(v.Asked, ask)
		v.Replies = append(v.Replies, r.ask(t, scrub, ask, at))
		if i == recorded-1 {
			fence(1)
		}
	}
	hear("salt/job/"+lastJob+"/ret/"+r.minion.ID, func(context.Context, string) error { return nil })
	fence(2)
	v.Files = written(t, r, scrub)
	mu.Lock()
	defer mu.Unlock()
	return v
}

const fencePrefix = "corpus-fence/"

func isFence(tag string) bool {
	return len(tag) > len(fencePrefix) && tag[:len(fencePrefix)] == fencePrefix
}

// ask returns a reply as text.
func (r *replayed) ask(t *testing.T, scrub corpus.Scrub, ask corpus.Request, at time.Time) string {
	var raw [16]byte
	_, _ = rand.Read(raw[:])
	nonce := fmt.Sprintf("%x", raw)
	load, err := corpus.Fresh(ask.Load, map[string]any{"nonce": nonce, "ts": at.Unix(), "tok": r.minion.Token()})
	labtest.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), corpusAnswer)
	defer cancel()
	reply, err := r.minion.RequestLoad(ctx, r.addr, load, nonce)
	var open *play.NotSealedError
	switch {
	case errors.As(err, &open):
		return "not sealed: " + scrub.Text(open.Text)
	case err != nil && ctx.Err() != nil:
		return "no reply"
	case err != nil:
		return "nothing that a minion can open"
	}
	return scrub.Value(reply)
}

// written is what lies in the master's cachedir when all has come to rest.
func written(t *testing.T, r *replayed, scrub corpus.Scrub) map[string][]string {
	t.Helper()
	script := filepath.Join(lab.ModuleRoot(), "integration/corpus/testdata/cache.py")
	look := func(ctx context.Context) (map[string][]string, error) {
		res, err := r.master.Run(ctx, "python", script, r.master.CacheDir())
		if err == nil {
			err = res.Err()
		}
		var files [][2]string
		if err == nil {
			err = json.Unmarshal([]byte(res.Stdout), &files)
		}
		out := map[string][]string{}
		for _, f := range files {
			name := scrub.Text(f[0])
			out[name] = append(out[name], scrub.Text(f[1]))
		}
		for _, texts := range out {
			slices.Sort(texts)
		}
		return out, err
	}
	last, err := look(t.Context())
	labtest.Must(t, err)
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "what is written to be the same twice",
		func(ctx context.Context) error {
			now, err := look(ctx)
			if err == nil && now["jobs/"+lastJob+"/"+r.minion.ID+"/return.p"] == nil {
				err = errors.New("the last return is not there")
			}
			if err == nil && !maps.EqualFunc(last, now, slices.Equal) {
				err = errors.New("it still changes")
			}
			last = now
			return err
		}))
	return last
}
