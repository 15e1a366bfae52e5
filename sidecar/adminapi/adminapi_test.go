package adminapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func TestUnreachable(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead.sock")
	l, err := net.Listen("unix", dead)
	require.NoError(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	for name, path := range map[string]string{
		"missing":    filepath.Join(dir, "none.sock"),
		"left over":  dead,
		"long path":  "/" + strings.Repeat("x", 200),
		"empty path": "",
	} {
		_, err := NewClient(path).Status(t.Context())
		u, ok := errors.AsType[*UnreachableError](err)
		if !ok || u.Hint == "" || HintOf(err) != u.Hint {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// serve answers every request on a fresh socket with h.
func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	srv := &http.Server{Handler: h}
	go srv.Serve(l)
	c := NewClient(path)
	t.Cleanup(func() { c.Close(); srv.Close() })
	return c
}

func TestOddAnswers(t *testing.T) {
	tests := []struct {
		name string
		h    http.HandlerFunc
		code Code
	}{
		{"not our error", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "teapot", http.StatusTeapot) },
			CodeInternal},
		{"ends early", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, `{"progress":{"step":"a"}}`) },
			CodeUnavailable},
		{"error event", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, `{"error":{"code":"no_quorum","message":"m"}}`)
		}, CodeNoQuorum},
		{"future field", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, `{"outcome":{"node":"m1","new":1},"extra":2}`)
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := serve(t, tt.h).Bootstrap(t.Context(), BootstrapRequest{}, nil)
			if CodeOf(err) != tt.code {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestContextEnds(t *testing.T) {
	release := make(chan struct{})
	c := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Status(ctx); CodeOf(err) != CodeTimeout || HintOf(err) == "" {
		t.Errorf("err = %v", err)
	}
}

func TestSecretPrintsNowhere(t *testing.T) {
	r := JoinRequest{Peer: "m1", Secret: "hunter2hunter2"}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if s := fmt.Sprintf(verb, r); strings.Contains(s, "hunter2") || strings.Contains(s, "68756e74") {
			t.Errorf("%s prints %s", verb, s)
		}
	}
	data, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(data), "hunter2hunter2") {
		t.Errorf("the wire must carry it: %s, %v", data, err)
	}
}

func TestEveryCodeHasAStatus(t *testing.T) {
	for _, c := range []Code{
		CodeInvalid, CodeDenied, CodeNotFound, CodeBusy, CodeNotMember, CodeMember, CodeNoQuorum, CodeRefused,
		CodeUnreachable, CodeTimeout, CodeUnavailable,
	} {
		if s := c.HTTPStatus(); s < 400 || s == http.StatusInternalServerError {
			t.Errorf("%s has status %d", c, s)
		}
	}
	if CodeInternal.HTTPStatus() != 500 || CodeOf(nil) != "" || CodeOf(errors.New("x")) != CodeInternal {
		t.Error("internal")
	}
}

func TestRingQuery(t *testing.T) {
	if err := (RingQuery{Minion: "a", JID: "b"}).Validate(); CodeOf(err) != CodeInvalid {
		t.Errorf("err = %v", err)
	}
	check.NoError(t, (RingQuery{}).Validate())
}
