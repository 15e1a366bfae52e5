package sidecar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/saltwire"
)

// setNews sets what the node finds out about the cluster, and for how long it has known that it lacks something.
func (w *world) setNews(err error, lacks time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noNews, w.lacks = err, lacks
}

// hook sets what is called when a key is looked up.
func (w *world) hook(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onAccepted = f
}

// looked is how often news were waited for.
func (w *world) looked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.caughtUp
}

// TestBehind checks who is served by a node that has the minion's key as accepted and cannot say whether it still is.
func TestBehind(t *testing.T) {
	behind := fmt.Errorf("%w: entry 19", ErrBehind)
	for name, tc := range map[string]struct {
		news            error
		lacks           time.Duration
		signsIn, served bool
	}{
		"it knows what the cluster knows":         {nil, 0, true, true},
		"there is no leader":                      {errors.New("no leader"), 0, true, true},
		"it lacks an entry since a moment":        {behind, time.Millisecond, false, true},
		"it has lacked an entry for some seconds": {behind, BehindTolerated, false, false},
		"it lacked one until a moment ago":        {nil, 0, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.setNews(tc.news, tc.lacks)
			if got := string(w.send(t, w.signIn(), "")); (got == "signed in") != tc.signsIn {
				t.Errorf("a sign-in was answered %q", got)
			}
			if got := w.send(t, w.request(t, map[string]any{"cmd": "_pillar"}), ""); w.opened(got) != tc.served || !tc.served &&
				got != nil {
				t.Errorf("a sealed request was answered %q", got)
			}
			if !tc.served && atMaster(w) > 0 {
				t.Error("the master got it")
			}
		})
	}
}

// TestBehind_PassesBack checks that the node which handed a request over is free to ask another one.
func TestBehind_PassesBack(t *testing.T) {
	w := newWorld(t)
	w.setNews(nil, BehindTolerated)
	got := w.send(t, w.request(t, map[string]any{"cmd": "_pillar"}), "b")
	if got != nil || w.passed.Load() != 1 || w.passedDown.Load() {
		t.Errorf("answered %q, passed back %d times", got, w.passed.Load())
	}
}

// TestBehind_UnknownRequestIsNotJudged checks that a request is not refused by a state that is known to be old: the
// minion may have been accepted elsewhere.
func TestBehind_UnknownRequestIsNotJudged(t *testing.T) {
	w := newWorld(t)
	w.accepted = false
	w.setNews(ErrBehind, time.Millisecond)
	if got := w.send(t, w.request(t, map[string]any{"cmd": "_pillar"}), ""); got != nil {
		t.Errorf("answered %q", got)
	}
}

// TestUnknown_IsOpenedOnce checks that what a session did not open is not hashed again when the session is the same.
// The body is turned into one that would open while the node waits for news.
func TestUnknown_IsOpenedOnce(t *testing.T) {
	for name, changed := range map[string]bool{"the key is the same": false, "the key is another": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			good := w.request(t, map[string]any{"cmd": "_pillar"})
			env, err := saltwire.ParseEnvelope(bytes.Clone(good))
			require.NoError(t, err)
			load := bytes.Clone(env.Load)
			env.Load[0] ^= 1
			old, err := w.proxy.sessions.findSession("web1", w.minion.PublicText())
			require.NoError(t, err)
			if changed {
				other := *old
				other.key = newKey(t)
				old = &other
			}
			got := make(chan []byte, 1)
			x := &request{at: time.Now(), to: respondTo(got)}
			w.proxy.catchUp.ask = func(context.Context) error {
				copy(env.Load, load)
				return nil
			}
			w.proxy.retryUnknown(x, env, old, guard.ReasonNotAuthentic)
			check.Equal(t, w.opened(<-got), changed, "served")
		})
	}
}

// TestCatchUp_DoesNotWaitForUnknownRequests lets the second look at a request take for ever: sign-ins go on.
func TestCatchUp_DoesNotWaitForUnknownRequests(t *testing.T) {
	w := newWorld(t)
	w.accepted = false
	hangs, release := make(chan struct{}), make(chan struct{})
	w.onAccepted = func() {
		if w.looked() > 0 {
			close(hangs)
			<-release
		}
	}
	answered := make(chan []byte, 1)
	go func() { answered <- w.send(t, w.request(t, map[string]any{"cmd": "_pillar"}), "") }()
	<-hangs
	w.hook(nil)
	if got := w.send(t, w.signIn(), ""); string(got) != "signed in" {
		t.Errorf("a sign-in was answered %q", got)
	}
	close(release)
	<-answered
}

// TestCatchUp_SaysBehind checks that a node which is behind goes on to wait for the whole time, and one without a
// leader not.
func TestCatchUp_SaysBehind(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		behind bool
		waits  time.Duration // the second time
	}{
		"behind":      {ErrBehind, true, catchUpTimeout},
		"no leader":   {errors.New("no leader"), false, catchUpBlind},
		"all is well": {nil, false, catchUpTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var waits []time.Duration
				c := newCatchUp(func(ctx context.Context) error {
					deadline, _ := ctx.Deadline()
					waits = append(waits, time.Until(deadline))
					return tc.err
				})
				var wg sync.WaitGroup
				for range 2 {
					told := make(chan bool, 1)
					c.addWaiter(t.Context(), &wg, false, func(behind bool) { told <- behind })
					if behind := <-told; behind != tc.behind {
						t.Errorf("behind %v", behind)
					}
				}
				wg.Wait()
				check.Equal(t, waits[1], tc.waits, "waits")
			})
		})
	}
}
