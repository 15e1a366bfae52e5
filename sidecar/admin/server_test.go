package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
)

func TestVerbs(t *testing.T) {
	b := &fakeBackend{}
	_, c := start(t, b)
	ctx := t.Context()
	if v, err := c.Version(ctx); err != nil || v.Version != "0.1.0" {
		t.Errorf("Version = %+v, %v", v, err)
	}
	if v, err := c.Status(ctx); err != nil || v.Node.ID != "m1" {
		t.Errorf("Status = %+v, %v", v, err)
	}
	if v, err := c.Members(ctx); err != nil || len(v.Members) != 1 || v.Members[0].Role != adminapi.RoleVoter {
		t.Errorf("Members = %+v, %v", v, err)
	}
	if v, err := c.Config(ctx); err != nil || len(v.Files) != 1 {
		t.Errorf("Config = %+v, %v", v, err)
	}
	q := adminapi.RingQuery{Minion: "web 1&jid=x"}
	if v, err := c.RingInfo(ctx, q); err != nil || v.Owner.Node != "m1" || b.ringQuery != q {
		t.Errorf("RingInfo = %+v, %v; backend was asked %+v", v, err, b.ringQuery)
	}
}

func TestErrorsKeepCodeAndHint(t *testing.T) {
	boom := errors.New("disk on fire")
	tests := []struct {
		name string
		err  error
		code adminapi.Code
		hint string
		text string
	}{
		{"plain", boom, adminapi.CodeInternal, "", "disk on fire"},
		{"coded", adminapi.Errorf(adminapi.CodeNoQuorum, "start m2", "no majority"), adminapi.CodeNoQuorum, "start m2",
			"no majority"},
		{"wrapped", fmt.Errorf("ask m2: %w", adminapi.Errorf(adminapi.CodeRefused, "look", "no")), adminapi.CodeRefused,
			"look", "ask m2: no"},
		{"late", fmt.Errorf("ask m2: %w", context.DeadlineExceeded), adminapi.CodeTimeout,
			"see its log: journalctl -u saltclusterd", "timed out: ask m2"},
		{"late itself", context.DeadlineExceeded, adminapi.CodeTimeout, "see its log: journalctl -u saltclusterd",
			"saltclusterd did not answer in time"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, c := start(t, &fakeBackend{status: func(context.Context) (adminapi.Status, error) {
				return adminapi.Status{}, tt.err
			}})
			_, err := c.Status(t.Context())
			if adminapi.CodeOf(err) != tt.code || adminapi.HintOf(err) != tt.hint || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %q code %q hint %q", err, adminapi.CodeOf(err), adminapi.HintOf(err))
			}
		})
	}
}

func TestSlowVerbIsEnded(t *testing.T) {
	slow := func(ctx context.Context) (adminapi.Status, error) {
		<-ctx.Done()
		return adminapi.Status{}, ctx.Err()
	}
	_, c := start(t, &fakeBackend{status: slow}, func(c *Config) { c.RequestTimeout = 20 * time.Millisecond })
	if _, err := c.Status(t.Context()); adminapi.CodeOf(err) != adminapi.CodeTimeout {
		t.Errorf("err = %v", err)
	}
}

// Who waits for a short time hears what was waited for before that time is over.
func TestRequestTimeout(t *testing.T) {
	slow := func(ctx context.Context) (adminapi.Status, error) {
		<-ctx.Done()
		return adminapi.Status{}, errors.New("no majority")
	}
	_, c := start(t, &fakeBackend{status: slow}, func(c *Config) { c.RequestTimeout = time.Hour })
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second) // of which the answer has a tenth
	defer cancel()
	if _, err := c.Status(ctx); err == nil || !strings.Contains(err.Error(), "no majority") {
		t.Errorf("err = %v", err)
	}
}

func TestStrangeRequests(t *testing.T) {
	reg := prometheus.NewRegistry()
	s, _ := start(t, &fakeBackend{}, func(c *Config) { c.Registerer = reg })
	hc := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", s.cfg.Socket)
		},
	}}
	tests := []struct {
		name, method, path, body string
		status                   int
	}{
		{"unknown verb", "GET", "/v1/shutdown", "", 404},
		{"wrong method", "POST", "/v1/status", "", 404},
		{"two keys", "GET", "/v1/ring?minion=a&jid=b", "", 400},
		{"no body", "POST", "/v1/join", "", 400},
		{"no peer", "POST", "/v1/join", "{}", 400},
		{"no node", "POST", "/v1/remove", "{}", 400},
		{"unknown field", "POST", "/v1/join", `{"peer":"m1","force":true}`, 400},
		{"two values", "POST", "/v1/join", `{"peer":"m1"}{}`, 400},
		{"too long", "POST", "/v1/join", `{"peer":"` + strings.Repeat("a", maxBody) + `"}`, 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tt.method, "http://x"+tt.path, strings.NewReader(tt.body))
			require.NoError(t, err)
			resp, err := hc.Do(req)
			require.NoError(t, err)
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != tt.status || !strings.Contains(string(body), `"code"`) {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
		})
	}
	if n := testutil.ToFloat64(s.metrics.requests.WithLabelValues("unknown", "not_found")); n != 2 {
		t.Errorf("unknown requests counted: %v", n)
	}
}

func TestConnectionLimit(t *testing.T) {
	s, _ := start(t, &fakeBackend{}, func(c *Config) { c.MaxConnections = 1 })
	first, err := net.Dial("unix", s.cfg.Socket)
	require.NoError(t, err)
	defer first.Close()
	second, err := net.Dial("unix", s.cfg.Socket)
	require.NoError(t, err)
	defer second.Close()
	second.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := second.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection beyond the limit: %v", err)
	}
}

func TestAllowed(t *testing.T) {
	me := uint32(os.Geteuid())
	s := &Server{group: 50, grouped: true}
	lonely := &Server{}
	tests := []struct {
		name string
		s    *Server
		p    peer
		want bool
	}{
		{"root", lonely, peer{uid: 0}, true},
		{"own user", lonely, peer{uid: me}, true},
		{"stranger", s, peer{uid: me + 1000, gid: 51}, false},
		{"primary group", s, peer{uid: me + 1000, gid: 50}, true},
		{"supplementary group", s, peer{uid: me + 1000, gid: 51, groups: []uint32{1, 50}}, true},
		{"no group configured, gid 0", lonely, peer{uid: me + 1000, gid: 0}, false},
		{"unknown", s, peer{err: errors.New("no credentials")}, false},
	}
	for _, tt := range tests {
		if got := tt.s.isAllowed(tt.p); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestPeerOfIsThisProcess(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	defer l.Close()
	c, err := net.Dial("unix", l.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	server, err := l.Accept()
	require.NoError(t, err)
	defer server.Close()
	p := peerOf(server.(*net.UnixConn))
	groups, err := os.Getgroups()
	require.NoError(t, err)
	if p.err != nil || p.uid != uint32(os.Geteuid()) || p.gid != uint32(os.Getegid()) || len(p.groups) != len(groups) {
		t.Errorf("peer = %+v, groups %v", p, groups)
	}
}
