package consensus

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
)

// limitedPort dials as peer.Port does: the kernel ends connections on which nothing is acknowledged.
type limitedPort struct {
	ln     net.Listener
	dialed chan *net.TCPConn
}

func (p limitedPort) Listener(string) (net.Listener, error) { return p.ln, nil }

func (p limitedPort) Dial(ctx context.Context, _ node.ID, _ string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.ln.Addr().String())
	if err != nil {
		return nil, err
	}
	tcp := c.(*net.TCPConn)
	p.dialed <- tcp
	return tcp, userTimeout(tcp, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 1000)
	})
}

func userTimeout(c *net.TCPConn, do func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	if failed := raw.Control(func(fd uintptr) { err = do(int(fd)) }); failed != nil {
		return failed
	}
	return err
}

// unreachablePort is one through which nobody can be reached.
type unreachablePort struct{ limitedPort }

func (unreachablePort) Dial(context.Context, node.ID, string) (net.Conn, error) {
	return nil, errors.New("cut off")
}

// A snapshot that did not arrive has failed for raft, which waits longer each time, when the member answers heartbeats
// again and not before.
func TestInstallSnapshot_FailsWithHeartbeat(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	n, err := New(Config{
		ID: "m1", Dir: t.TempDir(), Port: unreachablePort{limitedPort{ln: ln}}, Timing: fastTiming(),
		Forward: newFabric().forward("m1"), Stats: newFabric().stats("m1"),
	})
	require.NoError(t, err)
	trans := n.newTransport(ln, never, hcLogger{log: n.log})
	defer trans.Close()
	trans.reach = newReach(func(node.ID, uint64) bool { return true }, func() {})
	done := make(chan error, 1)
	go func() {
		done <- trans.InstallSnapshot("m2", "m2", &raft.InstallSnapshotRequest{}, &raft.InstallSnapshotResponse{},
			strings.NewReader(""))
	}()
	eventually(t, "it waits", func() (bool, string) {
		trans.reach.mu.Lock()
		defer trans.reach.mu.Unlock()
		return trans.reach.beats["m2"] != nil, "no wait"
	})
	trans.reach.noteAnswered("m2")
	if err := <-done; err == nil {
		t.Error("no error")
	}
}

// The receiver of a snapshot stores it while it comes. Its disk may stand still for longer than a lost packet is waited
// for.
func TestInstallSnapshot_NoUserTimeout(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := limitedPort{ln, make(chan *net.TCPConn, 10)}
	n, err := New(Config{
		ID: "m1", Dir: t.TempDir(), Port: port, Timing: fastTiming(), Forward: newFabric().forward("m1"),
		Stats: newFabric().stats("m1"),
	})
	require.NoError(t, err)
	own, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	trans := n.newTransport(own, never, hcLogger{log: n.log})
	defer trans.Close()
	defer ln.Close()
	for name, c := range map[string]struct {
		ask  func() error
		want int
	}{
		"entries": {func() error {
			return trans.NetworkTransport.AppendEntries("m2", "m2", &raft.AppendEntriesRequest{}, &raft.AppendEntriesResponse{})
		}, 1000},
		"a snapshot": {func() error {
			return trans.InstallSnapshot("m2", "m2", &raft.InstallSnapshotRequest{Size: 4}, &raft.InstallSnapshotResponse{},
				strings.NewReader("data"))
		}, 0},
	} {
		done := make(chan error, 1)
		go func() { done <- c.ask() }()
		asked, err := ln.Accept()
		require.NoError(t, err)
		if _, err := asked.Read(make([]byte, 1)); err != nil { // the connection is used
			t.Error(err)
		}
		got := 0
		err = userTimeout(<-port.dialed, func(fd int) (err error) {
			got, err = unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
			return err
		})
		if err != nil || got != c.want {
			t.Errorf("%s: TCP_USER_TIMEOUT %d, want %d (%v)", name, got, c.want, err)
		}
		_ = asked.Close()
		if err := <-done; err == nil {
			t.Errorf("%s: an answer that nobody has given", name)
		}
	}
}
