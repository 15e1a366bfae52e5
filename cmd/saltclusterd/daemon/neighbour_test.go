package daemon

import (
	"net"
	"strings"
	"testing"

	"saltclusterd/sidecar/adminapi"
)

// TestOnlyOneIsBorn: where a configured peer is a member of something, nothing is founded.
func TestOnlyOneIsBorn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := startNode(t, "a", t.TempDir(), "cluster_peers: ['"+l.Addr().String()+"', '127.0.0.1:1']")
	say := func(string, string) {}
	_, err = n.Bootstrap(t.Context(), adminapi.BootstrapRequest{}, say)
	if err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("%v", err)
	}
	if m, err := readMembership(n.cfg.Paths.StateDir); m != nil || err != nil {
		t.Errorf("born as %+v, %v", m, err)
	}
	_ = l.Close()
	if _, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{}, say); err != nil {
		t.Error(err)
	}
}
