package health

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func always(l Level, reason string) CheckFunc {
	return func(context.Context) Result { return Result{Level: l, Reason: reason} }
}

func open(t *testing.T, c *Checker) {
	t.Helper()
	if err := c.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
}

func TestScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewChecker(CheckerConfig{})
		c.Register("disk", ScopeLive|ScopeReady, always(OK, ""))
		c.Register("quorum", ScopeReady, always(Fail, "no leader"))
		c.Register("skew", ScopeServe, always(Warn, "2 s ahead"))
		c.Register("upstream", ScopeReq, always(OK, ""))
		open(t, c)
		defer c.Close()
		synctest.Wait()
		tests := []struct {
			scope Scope
			ok    bool
			bad   int
		}{
			{ScopeLive, true, 0},
			{ScopeReady, false, 2},
			{ScopePub, true, 1},
			{ScopeReq, true, 1},
			{ScopeServe, false, 2},
		}
		for _, tt := range tests {
			if r := c.Report(tt.scope); r.OK != tt.ok || len(r.Bad()) != tt.bad {
				t.Errorf("scope %b: %+v", tt.scope, r)
			}
		}
	})
}

// What a check says is put into the words of this host, for all who are told.
func TestChecker_Adapt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewChecker(CheckerConfig{Adapt: strings.ToUpper})
		c.Register("upstream", ScopeReq, func(context.Context) Result { return Result{Level: Fail, Reason: "down", Hint: "start it"} })
		open(t, c)
		defer c.Close()
		synctest.Wait()
		if bad := c.Report(ScopeReq).Bad(); len(bad) != 1 || bad[0].Reason != "DOWN" || bad[0].Hint != "START IT" {
			t.Errorf("%+v", bad)
		}
	})
}

func TestStartingAndDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewChecker(CheckerConfig{})
		c.Register("all", ScopeLive|ScopeServe, always(OK, ""))
		if c.Report(ScopeReady).OK || c.Report(ScopePub).OK {
			t.Error("ready before any check has answered")
		}
		if !c.Report(ScopeLive).OK {
			t.Error("not live while starting")
		}
		open(t, c)
		defer c.Close()
		synctest.Wait()
		if !c.Report(ScopeServe).OK || c.AgentLine() != "up 100% ready\n" {
			t.Errorf("not ready: %q", c.AgentLine())
		}
		c.SetDraining(true)
		if c.Report(ScopeReady).OK || c.Report(ScopeReq).OK || !c.Report(ScopeLive).OK || c.AgentLine() != "drain\n" {
			t.Errorf("draining: %q", c.AgentLine())
		}
		c.SetDraining(false)
		if !c.Report(ScopeServe).OK {
			t.Error("not ready after the drain was taken back")
		}
	})
}

func TestHangingCheckFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := NewChecker(CheckerConfig{Interval: time.Second, Timeout: 2 * time.Second})
		c.Register("stuck", ScopePub, func(context.Context) Result { <-release; return Result{} })
		c.Register("polite", ScopeReq, func(ctx context.Context) Result {
			<-ctx.Done()
			return Result{Level: Fail, Reason: "no answer"}
		})
		var runs atomic.Int32
		c.Register("good", ScopeReady, func(context.Context) Result { runs.Add(1); return Result{} })
		open(t, c)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if f := c.Report(ScopePub).Bad(); len(f) != 1 || !strings.Contains(f[0].Reason, "has not answered for 10s") {
			t.Errorf("stuck: %+v", f)
		}
		if f := c.Report(ScopeReq).Bad(); len(f) != 1 || f[0].Reason != "no answer" {
			t.Errorf("polite: %+v", f)
		}
		if !c.Report(ScopeReady).OK || runs.Load() < 10 {
			t.Errorf("good ran %d times", runs.Load())
		}
		if err := c.Close(); err == nil || !strings.Contains(err.Error(), "stuck") {
			t.Errorf("Close: %v", err)
		}
		close(release)
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
}

func TestKickShowsChangeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var level atomic.Int32
		c := NewChecker(CheckerConfig{Interval: time.Hour})
		c.Register("quorum", ScopeReady, func(context.Context) Result { return Result{Level: Level(level.Load())} })
		open(t, c)
		defer c.Close()
		synctest.Wait()
		level.Store(int32(Fail))
		c.Kick("other")
		synctest.Wait()
		if !c.Report(ScopeReady).OK {
			t.Error("ran without being asked")
		}
		c.Kick()
		c.Kick("quorum")
		synctest.Wait()
		if c.Report(ScopeReady).OK {
			t.Error("did not run")
		}
	})
}

// TestLook: a report after it knows what changed before it, also while a check from before goes on.
func TestLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewChecker(CheckerConfig{Interval: time.Hour, Timeout: time.Minute})
		var well atomic.Bool
		judge := func(before time.Duration) CheckFunc {
			return func(context.Context) Result {
				was := well.Load()
				time.Sleep(before)
				if was {
					return Result{Level: OK}
				}
				return Result{Level: Fail}
			}
		}
		c.Register("quick", ScopeReady, judge(0))
		c.Register("slow", ScopeReady, judge(10*time.Second))
		open(t, c)
		defer c.Close()
		synctest.Wait()
		well.Store(true)
		c.Look(t.Context())
		if r := c.Report(ScopeReady); !r.OK {
			t.Errorf("%+v", r)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		c.Look(ended) // waits for nothing
	})
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	c := NewChecker(CheckerConfig{Registerer: reg})
	c.Register("quorum", ScopeReady, always(OK, ""))
	want := `
# HELP saltcluster_health_check_level Newest result of a health check: 0 ok, 1 warn, 2 fail.
# TYPE saltcluster_health_check_level gauge
saltcluster_health_check_level{check="quorum"} 2
# HELP saltcluster_health_ready 1 when this node is ready.
# TYPE saltcluster_health_ready gauge
saltcluster_health_ready 0
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestOpenTwice(t *testing.T) {
	c := NewChecker(CheckerConfig{})
	open(t, c)
	if c.Open(t.Context()) == nil {
		t.Error("opened twice")
	}
}
