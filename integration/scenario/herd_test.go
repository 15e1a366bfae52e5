//go:build integration

package scenario

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/herd"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// herdAt makes a herd called "herd" on the host of that name that knows one address. Minions of the versions take
// turns. It has not started.
func herdAt(t *testing.T, l *lab.Lab, addr string, n int, versions ...string) *herd.Herd {
	t.Helper()
	return namedHerd(t, l, "herd", addr, n, 32, versions...)
}

func namedHerd(t *testing.T, l *lab.Lab, name, addr string, n, atATime int, versions ...string) *herd.Herd {
	t.Helper()
	from, err := l.Host(t.Context(), "herd")
	labtest.Must(t, err)
	d, err := from.NewDialer()
	labtest.Must(t, err)
	t.Cleanup(d.Close)
	cfg := herd.Config{Host: addr, Dial: d.Dial, Minions: n, Prefix: name, AtATime: atATime, Announce: true,
		KeepRequests: true}
	for _, v := range versions {
		p, err := herd.ProfileOf(v)
		labtest.Must(t, err)
		cfg.Profiles = append(cfg.Profiles, p)
	}
	h, err := herd.New(cfg)
	labtest.Must(t, err)
	return h
}

// loose starts a herd and waits until all of it is subscribed.
func loose(t *testing.T, h *herd.Herd, within time.Duration) {
	t.Helper()
	h.Open(t.Context())
	t.Cleanup(func() { labtest.Must(t, h.Close()) })
	labtest.Must(t, lab.Eventually(t.Context(), within, "the herd to be subscribed", func(context.Context) error {
		if s := h.Stats(); s.Subscribed < s.Minions {
			return fmt.Errorf("%d of %d subscribed, %d are signing in, wrong: %v", s.Subscribed, s.Minions, s.SigningIn, s.Err())
		}
		return nil
	}))
}

// pinged waits until all of the herd have heard and returned a job of master m, published anew until they have: a
// subscription takes a moment to reach a master.
func pinged(t *testing.T, m *lab.Master, h *herd.Herd, within time.Duration) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), within, "the herd to answer "+m.Version, func(ctx context.Context) error {
		got, err := m.Pub(ctx, "herd*", "test.ping")
		if err != nil {
			return err
		}
		return lab.AnsweredBy(got, h.IDs()...)
	}))
}

// A herd is to a stock master of each version what real minions are: they sign in, are listed, answer jobs, and come
// back after a restart of the master.
func TestHerdIsStock(t *testing.T) {
	l := labtest.New(t, lab.Options{})
	for i, version := range lab.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			at, err := l.Host(ctx, fmt.Sprint("m", i+1))
			labtest.Must(t, err)
			m, err := at.NewMaster(version, at.Addr, lab.Settings{"timeout": 5, "gather_job_timeout": 15,
				"sign_pub_messages": true})
			labtest.Must(t, err)
			h := herdAt(t, l, at.Addr, 30, lab.Versions...)
			labtest.Must(t, herd.Accept(filepath.Join(m.PKIDir(), "minions"), h.Key(), h.IDs()...))
			labtest.Must(t, m.Start(ctx))
			labtest.Must(t, m.WaitReady(ctx, 3*time.Minute))
			loose(t, h, time.Minute)
			pinged(t, m, h, time.Minute)

			res, err := m.Run(ctx, "salt-run", "--out=json", "manage.up")
			labtest.Must(t, err)
			for _, id := range h.IDs() {
				if !strings.Contains(res.Stdout, id) {
					t.Errorf("manage.up does not list %s", id)
				}
			}
			before := h.Stats()
			labtest.Must(t, m.Restart(ctx))
			labtest.Must(t, m.WaitReady(ctx, 3*time.Minute))
			pinged(t, m, h, 2*time.Minute)
			s := h.Stats()
			if s.SignIns <= before.SignIns {
				t.Errorf("nobody has signed in at the new master: %+v", s)
			}
			if s.Stale+s.Discarded+s.SignInFailed > 0 || s.Err() != nil {
				t.Errorf("%+v", s)
			}
			if m.Logged("Traceback") || m.Logged("Unhandled") {
				t.Error(m.Tail(30))
			}
		})
	}
}
