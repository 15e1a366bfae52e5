package health

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestAgentWeight follows a node from its start through a warning, a failure, a drain and its removal.
func TestAgentWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var state atomic.Pointer[Result]
		say := func(r Result) { state.Store(&r); time.Sleep(1100 * time.Millisecond); synctest.Wait() }
		state.Store(&Result{Level: OK})
		c := NewChecker(CheckerConfig{SlowStart: 30 * time.Second})
		c.Register("edges", ScopePub|ScopeReq, func(context.Context) Result { return *state.Load() })
		open(t, c)
		defer c.Close()
		synctest.Wait()
		expect := func(when, want string) {
			t.Helper()
			if got := c.AgentLine(); got != want+"\n" {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
		}
		expect("at the start", "up 10% ready")
		time.Sleep(15 * time.Second)
		expect("half of the way", "up 55% ready")
		time.Sleep(15 * time.Second)
		expect("well", "up 100% ready")
		say(Result{Level: Warn})
		expect("with a warning", "up 75% ready")
		say(Result{Level: OK})
		expect("without: a warning is no failure", "up 100% ready")
		say(Result{Level: Fail})
		expect("failing", "down #edges")
		say(Result{Level: OK})
		expect("well again", "up 10% ready")
		c.SetDraining(true)
		expect("draining", "drain")
		time.Sleep(time.Minute)
		c.SetDraining(false)
		expect("no longer", "up 10% ready")
		say(Result{Level: Fail, Maintenance: true})
		expect("removed", "maint")
	})
}

// TestAgentKeepsSubscribers: where only requests fail, subscribers stay.
func TestAgentKeepsSubscribers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewChecker(CheckerConfig{})
		c.Register("edges", ScopePub|ScopeReq, always(OK, ""))
		c.Register("master", ScopeReq, always(Fail, "no salt-master of the cluster answers"))
		open(t, c)
		defer c.Close()
		synctest.Wait()
		if got := c.AgentLine(); got != "up 75% ready\n" {
			t.Errorf("%q", got)
		}
	})
}
