package migration

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/consensus/state"
	"saltclusterd/fsync/unshare"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
)

// newSteps returns the steps of node m1, whose background tasks the test waits for.
func newSteps(t *testing.T, h *Host) *Steps {
	t.Helper()
	return NewSteps(StepsConfig{
		Host: h, Go: func(run func(context.Context)) { run(t.Context()) },
		Log: state.New(), Lag: noLag(), Ready: func() bool { return true },
		Members: func(context.Context) []adminapi.Member { return nil },
		Peers:   Peers{List: func() []node.ID { return nil }},
	})
}

// noLag is a node that lacks nothing.
func noLag() Lag {
	return Lag{
		Serving: func() bool { return true }, CaughtUp: func() bool { return true },
		MasterProblem: func() string { return "" }, KeysSynced: func(uint64) bool { return true },
		RootsPending: func() string { return "" },
	}
}

func TestSteps_Behind(t *testing.T) {
	host, _ := newSharedHost(t)
	for _, test := range []struct {
		name   string
		change func(*Lag)
		want   string
	}{
		{"nothing", func(*Lag) {}, ""},
		{"edges", func(l *Lag) { l.Serving = func() bool { return false } }, "are being opened"},
		{"consensus", func(l *Lag) { l.CaughtUp = func() bool { return false } }, "catching up"},
		{"master", func(l *Lag) { l.MasterProblem = func() string { return "it is down" } }, "it is down"},
		{"keys", func(l *Lag) { l.KeysSynced = func(uint64) bool { return false } }, "key files"},
		{"roots", func(l *Lag) { l.RootsPending = func() string { return "3 files" } }, "file and pillar roots: 3 files"},
	} {
		s := newSteps(t, host)
		test.change(&s.c.Lag)
		if got := s.behind(); !strings.Contains(got, test.want) || (test.want == "") != (got == "") {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}

// members is a transport to other members, by their node id.
type members map[string]http.Handler

// RoundTrip implements http.RoundTripper.
func (m members) RoundTrip(r *http.Request) (*http.Response, error) {
	h, ok := m[r.URL.Host]
	if !ok {
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

func newMux(s *Steps) *peerrpc.Mux {
	mux := peerrpc.NewMux(func(context.Context) (node.ID, bool) { return "m1", true })
	s.Handle(mux)
	return mux
}

func TestBegin_Refused(t *testing.T) {
	shared, _ := newSharedHost(t)
	isolated, _ := newSharedHost(t)
	isolated.c.Shared = false
	busy, _ := newSharedHost(t)
	require.NoError(t, busy.lockStep(adminapi.MigrateCopy))
	for _, test := range []struct {
		name string
		host *Host
		step adminapi.MigrateStep
		want string
		code adminapi.Code
	}{
		{"unknown step", shared, "sideways", `there is no step "sideways"`, adminapi.CodeInvalid},
		{"no share", isolated, adminapi.MigrateCopy, "m1 shares no file system", adminapi.CodeRefused},
		{"another step", busy, adminapi.MigrateSwitch, "m1 is running: copy", adminapi.CodeBusy},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := newSteps(t, test.host).Begin(t.Context(), adminapi.MigrateRequest{Step: test.step})
			if err == nil || err.Error() != test.want || adminapi.CodeOf(err) != test.code {
				t.Errorf("got %v (%v), want %s", err, adminapi.CodeOf(err), test.want)
			}
		})
	}
}

// What a step fails with is in the next report.
func TestReport_Error(t *testing.T) {
	h, _ := newSharedHost(t)
	s := newSteps(t, h)
	if _, err := s.Begin(t.Context(), adminapi.MigrateRequest{Step: adminapi.MigrateSwitch}); err != nil {
		t.Fatal(err)
	}
	if n := s.Report(t.Context(), false, ""); n.Error != "m1 has no copies yet" || n.Busy != "" || !n.Caught ||
		n.Stage != "shared" {
		t.Errorf("%+v", n)
	}
}

func TestVerbs(t *testing.T) {
	h1, _ := newSharedHost(t)
	h2, top := newSharedHost(t)
	h2.c.Node = "m2"
	c := &Cluster{
		Self: "m1", Steps: newSteps(t, h1),
		Peers: Peers{
			List:   func() []node.ID { return []node.ID{"m2", "m3"} },
			Client: peerrpc.Client{HTTP: &http.Client{Transport: members{"m2": newMux(newSteps(t, h2))}}},
		},
		Find: func(name string) (node.ID, error) {
			if name == "" {
				return "m1", nil
			}
			return node.ID(name), nil
		},
	}
	v := Verbs{Of: func() (*Cluster, error) { return c, nil }}

	m, err := v.Migration(t.Context(), true, "")
	if err != nil || m.From != "m1" || len(m.Nodes) != 2 || m.Nodes[0].Node != "m1" || m.Nodes[1].Node != "m2" ||
		m.Missing["m3"] == "" {
		t.Fatalf("%+v, %v", m, err)
	}
	if n := m.Nodes[1]; len(n.Trees) != 3 || len(n.Steps) == 0 {
		t.Errorf("no plan of m2: %+v", n)
	}
	if n, err := v.Migrate(t.Context(), adminapi.MigrateRequest{Node: "m2", Step: adminapi.MigrateCopy}); err != nil ||
		n.Node != "m2" {
		t.Errorf("%+v, %v", n, err)
	}
	check.Equal(t, h2.State().Stage, unshare.Copied, "m2")
	check.Equal(t, h1.State().Stage, unshare.Shared, "m1")
	request := adminapi.MigrateRequest{Node: "m2", Step: adminapi.MigrateCopy, To: top + "/etc"}
	_, err = v.Migrate(t.Context(), request)
	if adminapi.CodeOf(err) != adminapi.CodeRefused || !strings.Contains(err.Error(), "only if it is empty") {
		t.Errorf("a directory that holds something else: %v", err)
	}
	if _, err := v.Migrate(t.Context(), adminapi.MigrateRequest{Node: "m3", Step: adminapi.MigrateCopy}); err == nil {
		t.Error("a member that cannot be reached has begun")
	}

	c.Steps = nil
	_, err = v.Migration(t.Context(), false, "")
	if adminapi.CodeOf(err) != adminapi.CodeInvalid || err.Error() != "a witness shares no file system" {
		t.Errorf("of a witness: %v", err)
	}
	none := errors.New("no cluster")
	v.Of = func() (*Cluster, error) { return nil, none }
	_, err = v.Migration(t.Context(), false, "")
	_, err2 := v.Migrate(t.Context(), adminapi.MigrateRequest{})
	if !errors.Is(err, none) || !errors.Is(err2, none) {
		t.Errorf("without a cluster: %v, %v", err, err2)
	}
}
