package admin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
)

func TestOperationStreams(t *testing.T) {
	b := &fakeBackend{join: func(_ context.Context, r adminapi.JoinRequest, p Progress) (adminapi.Outcome, error) {
		p("prove", "proving the right to join")
		p("learner", "catching up with "+r.Peer)
		return adminapi.Outcome{Node: "m2", Next: []string{"restart salt-master"}}, nil
	}}
	_, c := start(t, b)
	var steps []string
	got, err := c.Join(t.Context(), adminapi.JoinRequest{Peer: "m1"},
		func(p adminapi.Progress) { steps = append(steps, p.Step+": "+p.Message) })
	if err != nil || got.Node != "m2" || len(got.Next) != 1 {
		t.Errorf("Join = %+v, %v", got, err)
	}
	if want := "prove: proving the right to join|learner: catching up with m1"; strings.Join(steps, "|") != want {
		t.Errorf("progress %q", steps)
	}
}

func TestOperationFails(t *testing.T) {
	b := &fakeBackend{join: func(context.Context, adminapi.JoinRequest, Progress) (adminapi.Outcome, error) {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeRefused, "compare cluster_secret", "m1 refused the proof")
	}}
	_, c := start(t, b)
	_, err := c.Join(t.Context(), adminapi.JoinRequest{Peer: "m1"}, nil)
	if adminapi.CodeOf(err) != adminapi.CodeRefused || adminapi.HintOf(err) != "compare cluster_secret" {
		t.Errorf("err = %v", err)
	}
}

func TestOperationTimesOutSayingWhere(t *testing.T) {
	b := &fakeBackend{bootstrap: func(ctx context.Context, _ adminapi.BootstrapRequest,
		p Progress) (adminapi.Outcome, error) {
		p("wait", "waiting for the salt-master")
		<-ctx.Done()
		return adminapi.Outcome{}, ctx.Err()
	}}
	_, c := start(t, b)
	_, err := c.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: 20 * time.Millisecond}, nil)
	if adminapi.CodeOf(err) != adminapi.CodeTimeout || !strings.Contains(err.Error(), "waiting for the salt-master") {
		t.Errorf("err = %v", err)
	}
}

func TestOperation_BusyAndCanceled(t *testing.T) {
	started, ended := make(chan struct{}, 1), make(chan error, 1)
	b := &fakeBackend{bootstrap: func(ctx context.Context, _ adminapi.BootstrapRequest,
		p Progress) (adminapi.Outcome, error) {
		started <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return adminapi.Outcome{}, ctx.Err()
	}}
	_, c := start(t, b)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := c.Bootstrap(ctx, adminapi.BootstrapRequest{}, nil)
		result <- err
	}()
	receive(t, started, "the start")
	if _, err := c.Bootstrap(t.Context(), adminapi.BootstrapRequest{}, nil); adminapi.CodeOf(err) != adminapi.CodeBusy {
		t.Errorf("second operation: %v", err)
	}
	cancel()
	check.ErrorIs(t, receive(t, result, "the client's end"), context.Canceled, "client")
	receive(t, ended, "the end of the operation")
}

func TestCloseEndsOperations(t *testing.T) {
	started := make(chan struct{}, 1)
	b := &fakeBackend{bootstrap: func(ctx context.Context, _ adminapi.BootstrapRequest,
		p Progress) (adminapi.Outcome, error) {
		started <- struct{}{}
		<-ctx.Done()
		return adminapi.Outcome{}, context.Cause(ctx)
	}}
	s, c := start(t, b)
	result := make(chan error, 1)
	go func() {
		_, err := c.Bootstrap(t.Context(), adminapi.BootstrapRequest{}, nil)
		result <- err
	}()
	receive(t, started, "the start")
	require.NoError(t, s.Close())
	if err := receive(t, result, "the client's end"); adminapi.CodeOf(err) != adminapi.CodeUnavailable ||
		!strings.Contains(err.Error(), "stopping") {
		t.Errorf("client: %v", err)
	}
}

// A client that does not read must not hold up the operation; and progress
// after the end must not touch the finished response.
func TestClientThatDoesNotRead(t *testing.T) {
	finished := make(chan Progress, 1)
	b := &fakeBackend{bootstrap: func(_ context.Context, _ adminapi.BootstrapRequest,
		p Progress) (adminapi.Outcome, error) {
		text := strings.Repeat("x", 64<<10)
		for range 64 {
			p("fill", text)
		}
		finished <- p
		return adminapi.Outcome{}, nil
	}}
	s, _ := start(t, b)
	s.lineTimeout = 50 * time.Millisecond
	conn, err := net.Dial("unix", s.cfg.Socket)
	require.NoError(t, err)
	defer conn.Close()
	io.WriteString(conn, "POST /v1/bootstrap HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
	p := receive(t, finished, "the end of the operation")
	p("late", "after the end")
}

func TestSecretIsNotLogged(t *testing.T) {
	const secret = "correct-horse-battery-staple"
	var log lockedBuffer
	b := &fakeBackend{join: func(_ context.Context, r adminapi.JoinRequest, p Progress) (adminapi.Outcome, error) {
		check.Equal(t, string(r.Secret), secret, "the secret did not arrive")
		return adminapi.Outcome{}, errors.New("no")
	}}
	_, c := start(t, b, func(c *Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	c.Join(t.Context(), adminapi.JoinRequest{Peer: "m1", Secret: secret}, nil)
	if text := log.String(); strings.Contains(text, secret) || !strings.Contains(text, "admin operation failed") {
		t.Errorf("log:\n%s", text)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestDrain_DuringOtherOperation: a drain does not wait for other operations, so that it can be taken back at any time.
func TestDrain_DuringOtherOperation(t *testing.T) {
	joining, release := make(chan struct{}), make(chan struct{})
	_, c := start(t, &fakeBackend{join: func(context.Context, adminapi.JoinRequest, Progress) (adminapi.Outcome, error) {
		close(joining)
		<-release
		return adminapi.Outcome{}, nil
	}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = c.Join(context.Background(), adminapi.JoinRequest{Peer: "m1"}, nil)
	}()
	<-joining
	if out, err := c.Drain(t.Context(), adminapi.DrainRequest{Node: "m2"}, nil); err != nil || out.Node != "m2" {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err := c.Undrain(t.Context(), adminapi.UndrainRequest{Node: "m2"}, nil); err != nil ||
		out.Message != "serving" {
		t.Errorf("%+v, %v", out, err)
	}
	close(release)
	<-done
}
