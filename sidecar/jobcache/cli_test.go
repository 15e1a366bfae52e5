package jobcache_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/eventbus"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/localmaster/mastertest"
)

// TestStockCLI publishes a job with the stock CLI of a running stock master and gives it returns that Python never
// saw: the CLI prints them, the jobs runner finds them, and the files look like the master's own.
func TestStockCLI(t *testing.T) {
	for _, v := range mastertest.Versions(t) {
		t.Run(v, func(t *testing.T) {
			t.Parallel()
			cliRound(t, v)
		})
	}
}

func cliRound(t *testing.T, version string) {
	m := mastertest.New(t, mastertest.Options{Version: version, Config: "worker_threads: 1"})
	keys := newKeys(t, filepath.Join(m.PkiDir, "minions"))
	ver, err := localmaster.ParseVersion(version)
	require.NoError(t, err)
	cfg, err := localmaster.LoadConfig(m.ConfigPath, ver)
	require.NoError(t, err)
	c, err := jobcache.New(jobcache.Config{Options: cfg, Version: ver, CacheDir: cfg.CacheDir, UID: -1, GID: -1,
		Keys: keys})
	require.NoError(t, err)
	defer c.Close()
	m.Start()
	bus := eventbus.New(cfg, eventbus.Options{})
	jids := make(chan string, 10)
	bus.Subscribe(func(tag string, _ []byte) {
		if p := strings.Split(tag, "/"); len(p) == 4 && p[1] == "job" && p[3] == "new" {
			jids <- p[2]
		}
	})
	require.NoError(t, bus.Open(context.Background()))
	defer bus.Close()
	for end := time.Now().Add(20 * time.Second); !bus.Up(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no event bus")
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	cli := exec.CommandContext(ctx, mastertest.Bin(t, version, "salt"), "-c", m.ConfigDir, "-L", "m1,m2", "-t", "40",
		"--out", "json", "--out-indent", "-1", "test.ping")
	var out, complaints strings.Builder
	cli.Stdout, cli.Stderr = &out, &complaints
	require.NoError(t, cli.Start())
	var jid string
	select {
	case jid = <-jids:
	case <-ctx.Done():
		t.Fatal("the job was not published\n" + m.Log())
	}
	// as a minion takes: a 3007 CLI overlooks what comes within milliseconds of the publication
	time.Sleep(500 * time.Millisecond)
	answer(t, ctx, c, bus, jid)
	answered := time.Now()
	err = cli.Wait()
	t.Logf("salt printed it %v after the events", time.Since(answered).Round(time.Millisecond))
	if err != nil {
		t.Fatalf("salt: %v\n%s%s", err, &out, &complaints)
	}
	for _, want := range []string{`{"m1": true}`, `{"m2": true}`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("salt printed %s%s", &out, &complaints)
		}
	}
	found := m.Run("salt-run", "jobs.lookup_jid", jid, "--out", "json")
	if !strings.Contains(found, `"m1": true`) || !strings.Contains(found, `"m2": true`) {
		t.Errorf("jobs.lookup_jid printed %s", found)
	}
	sameLook(t, cfg.CacheDir)
}

func answer(t *testing.T, ctx context.Context, c *jobcache.Cache, bus *eventbus.Bus, jid string) {
	t.Helper()
	f := jobcache.NewFirer(jobcache.FirerConfig{Bus: bus})
	for _, id := range []string{"m1", "m2"} {
		p, err := c.Plan(wire(t, ret(jid, id)), jobcache.Facts{Received: time.Now()})
		if err == nil {
			err = c.Apply(ctx, p)
		}
		require.NoError(t, err)
		if n, err := f.Fire(ctx, []jobcache.Plan{p}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
}

// sameLook compares the modes of what the master wrote for the job with what we did.
func sameLook(t *testing.T, cacheDir string) {
	t.Helper()
	jobs, _ := filepath.Glob(filepath.Join(cacheDir, "jobs/*/*/m1"))
	if len(jobs) != 1 {
		t.Fatalf("%d directories of m1", len(jobs))
	}
	job := filepath.Dir(jobs[0])
	for ours, theirs := range map[string]string{"m1": ".", "m1/return.p": ".load.p"} {
		a, err1 := os.Stat(filepath.Join(job, ours))
		b, err2 := os.Stat(filepath.Join(job, theirs))
		if err1 != nil || err2 != nil || a.Mode() != b.Mode() {
			t.Errorf("%s: %v, %s: %v (%v, %v)", ours, a.Mode(), theirs, b.Mode(), err1, err2)
		}
	}
}
