package peerrpc

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"syscall"
	"testing"

	"saltclusterd/gossip/node"
)

func TestAskAll(t *testing.T) {
	down := errors.New("down")
	all := make(chan struct{}) // each waits for the others, so that a sequence would never end
	waiting := make(chan struct{}, 3)
	go func() {
		for range 3 {
			<-waiting
		}
		close(all)
	}()
	got := AskAll(t.Context(), []node.ID{"m1", "m2", "m3"}, func(_ context.Context, id node.ID) (string, error) {
		waiting <- struct{}{}
		<-all
		if id == "m2" {
			return "", down
		}
		return "answer of " + string(id), nil
	})
	want := map[node.ID]string{"m1": "answer of m1", "m3": "answer of m3"}
	if !maps.Equal(got.Of, want) {
		t.Errorf("answers are %v, want %v", got.Of, want)
	}
	if !errors.Is(got.Failed["m2"], down) || !slices.Equal(got.Missing(), []string{"m2"}) {
		t.Errorf("failed are %v", got.Failed)
	}
}

func TestReason(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"timeout", context.DeadlineExceeded, "it did not answer in time"},
		{"connection refused", &url.Error{Op: "Post", URL: "https://m3/v1/jobs", Err: &net.OpError{
			Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.13:4520")),
			Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}}, "connection refused (10.0.0.13:4520)"},
		{"cut", &url.Error{Op: "Post", URL: "https://m3/v1/jobs", Err: io.EOF}, "EOF"},
		{"anything else", errors.New("call /v1/x of m1: 404"), "call /v1/x of m1: 404"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Reason(test.err); got != test.want {
				t.Errorf("Reason is %q, want %q", got, test.want)
			}
		})
	}
}
