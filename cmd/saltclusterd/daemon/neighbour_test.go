package daemon

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/sidecar/adminapi"
)

// TestOnlyOneIsBorn: where a configured peer is a member of something, nothing is founded.
func TestOnlyOneIsBorn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := startNode(t, "a", t.TempDir(), "cluster_peers: ['"+l.Addr().String()+"', '127.0.0.1:1']")
	say := func(string, string, ...int) {}
	_, err = n.Bootstrap(t.Context(), adminapi.BootstrapRequest{}, say)
	if err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("%v", err)
	}
	if m, err := membership.ReadRecord(n.cfg.Paths.StateDir); m != nil || err != nil {
		t.Errorf("born as %+v, %v", m, err)
	}
	_ = l.Close()
	if _, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{}, say); err != nil {
		t.Error(err)
	}
}

// TestBirthsAtOnce runs bootstrap on all nodes at the same time: one is born, the others join it.
func TestBirthsAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 2 {
		var ports, peers []string
		for range 3 {
			port := strconv.Itoa(freePort(t, "127.0.0.1"))
			ports, peers = append(ports, port), append(peers, "'127.0.0.1:"+port+"'")
		}
		var nodes []*testNode
		for i, port := range ports {
			nodes = append(nodes, startNodeWith(t, string(rune('a'+i)), t.TempDir(), []string{
				"cluster_pool_port: " + port, "cluster_peers: [" + strings.Join(peers, ", ") + "]"}))
		}
		done := make(chan error, len(nodes))
		for _, n := range nodes {
			go func() {
				_, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{}, quiet)
				done <- err
			}()
		}
		born := 0
		for range nodes {
			switch err := <-done; adminapi.CodeOf(err) {
			case "":
				born++
			case adminapi.CodeRefused, adminapi.CodeMember: // which has joined meanwhile
			default:
				t.Errorf("round %d: %v", round, err)
			}
		}
		if born != 1 {
			t.Errorf("round %d: %d clusters", round, born)
		}
		for _, n := range nodes {
			eventually(t, "one cluster", wantMembers(n, "a", "b", "c"))
		}
		for _, n := range nodes { // none before all are there: the first one may have the only vote
			n.halt()
		}
	}
}
