package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/takeover"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
)

// This test program is also the new process that takes over from a daemon in a test, or is to be started in its place.
// Its last argument is the configuration.
func init() {
	path := os.Args[len(os.Args)-1]
	from, err := takeover.ReadDescriptor(os.Getenv)
	switch replaces := os.Getenv(takeover.ReplacesEnv); {
	case err != nil:
	case from != 0:
		err = takeOver(from, path)
	case replaces != "":
		err = rehearse(replaces, path)
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "new process:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func rehearse(replaces, path string) error {
	cfg, err := config.Load(path)
	if err != nil {
		return err
	}
	return Rehearse(context.Background(), cfg, replaces)
}

func takeOver(from uintptr, path string) error {
	cfg, err := config.Load(path)
	if err != nil {
		return err
	}
	d, err := New(cfg, "next", slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	d.SetProcess(takeover.Process{Takeover: from})
	parent, err := unix.PidfdOpen(os.Getppid(), 0)
	if err != nil {
		return err
	}
	go func() { // until the end of the process, which must not be later than that of the test
		for ended := []unix.PollFd{{Fd: int32(parent), Events: unix.POLLIN}}; ended[0].Revents == 0; {
			_, _ = unix.Poll(ended, -1) // again after a signal
		}
		os.Exit(1)
	}()
	return d.Run(context.Background(), func() {})
}

// reconfigure puts other values for options into a node's configuration.
func (n *testNode) reconfigure(t *testing.T, values map[string]string) {
	t.Helper()
	path := filepath.Join(n.dir, "conf")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(string(text)) {
		option, _, _ := strings.Cut(line, ":")
		if _, ok := values[option]; !ok {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	for option, value := range values {
		lines = append(lines, option+": "+value)
	}
	write(t, path, strings.Join(lines, "\n"), 0o600)
}

// taken are addresses that another process has.
type taken struct{ tcp, tcpPort, udp, udpPort, unix string }

func takeAddresses(t *testing.T, dir string) (a taken) {
	t.Helper()
	tcp, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", freePort(t, "127.0.0.1")))
	require.NoError(t, err)
	t.Cleanup(func() { tcp.Close() })
	udp, err := net.ListenPacket("udp", fmt.Sprint("127.0.0.1:", freePort(t, "127.0.0.1")))
	require.NoError(t, err)
	t.Cleanup(func() { udp.Close() })
	a = taken{tcp: tcp.Addr().String(), udp: udp.LocalAddr().String(), unix: filepath.Join(dir, "taken")}
	socket, err := net.Listen("unix", a.unix)
	require.NoError(t, err)
	t.Cleanup(func() { socket.Close() })
	_, a.tcpPort, _ = net.SplitHostPort(a.tcp)
	_, a.udpPort, _ = net.SplitHostPort(a.udp)
	return a
}

// mistake is a change of the configuration with which no process can serve, and the reason.
type mistake struct{ what, option, value, reason string }

// doors are mistakes for any node.
func (a taken) doors() []mistake {
	const inUse = ": bind: address already in use"
	return []mistake{
		{"health and metrics", "health_listen", a.tcp, "health_listen: listen tcp " + a.tcp + inUse},
		{"agent checks", "agent_check_listen", a.tcp, "agent_check_listen: listen tcp " + a.tcp + inUse},
		{"an address of no host here", "health_listen", "192.0.2.1:4580",
			"192.0.2.1:4580: bind: cannot assign requested address"},
		{"the admin socket", "admin_socket", a.unix, a.unix + ": another saltclusterd answers on it"},
		{"who may use the admin socket", "admin_group", "no-such-group", "no-such-group"},
		{"the salt-master's version", "salt_master_command", "/no/such/salt-master", "/no/such/salt-master"},
	}
}

// members are mistakes for a member of the cluster.
func (a taken) members() []mistake {
	const inUse = ": bind: address already in use"
	return []mistake{
		{"peers", "cluster_pool_port", a.tcpPort, "open peer port: listen tcp " + a.tcp + inUse},
		{"gossip", "cluster_pool_port", a.udpPort, "bind the gossip socket: listen udp " + a.udp + inUse},
		{"publications", "publish_port", a.tcpPort, "listen for minions: listen tcp " + a.tcp + inUse},
		{"requests", "ret_port", a.tcpPort, "listen for minions: listen tcp " + a.tcp + inUse},
		{"another cluster", "cluster_id", "another", `this node is a member of the cluster "test"`},
	}
}

// A new process finds an address in use while the old one still serves, and reports it. Minions notice nothing.
func TestUpgrade_AddressInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	n := startProcess(t, takeover.Process{Binary: self, Check: []string{"-test.run=^$"},
		Args: []string{filepath.Join(dir, "conf")}}, "m1", dir)
	ctx := t.Context()
	if out, err := n.Bootstrap(ctx, adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet); err != nil ||
		!out.Ready {
		t.Fatalf("%+v, %v", out, err)
	}
	good, err := os.ReadFile(filepath.Join(dir, "conf"))
	require.NoError(t, err)

	a := takeAddresses(t, dir)
	cases := append(append(a.doors(), a.members()...), mistake{
		"what the old process has in another form", "cluster_interface", "0.0.0.0",
		"the running saltclusterd, which listens on " + n.addr + "; to release it",
	})
	for _, c := range cases {
		values := map[string]string{"admin_socket": filepath.Join(dir, "other.sock")}
		values[c.option] = c.value
		n.reconfigure(t, values)
		out, err := n.Upgrade(ctx, adminapi.UpgradeRequest{}, quiet)
		if err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %+v, %v; want %q", c.what, out, err, c.reason)
		}
		if err == nil || n.HandedOver() {
			n.endSuccessor(t, out.PID)
			t.Fatalf("%s: the old process has handed over to one that cannot serve", c.what)
		}
		if !n.tenure.Current().role.ready() {
			t.Fatalf("%s: the old process does not serve", c.what)
		}
		if _, err := os.Lstat(filepath.Join(dir, "other.sock")); err == nil {
			t.Errorf("%s: the socket of the new process is left over", c.what)
		}
		write(t, filepath.Join(dir, "conf"), string(good), 0o600)
	}

	was := n.cfg.Paths.AdminSocket
	health := fmt.Sprint("127.0.0.1:", freePort(t, "127.0.0.1"))
	n.reconfigure(t, map[string]string{
		"health_listen": health, "agent_check_listen": fmt.Sprint("127.0.0.1:", freePort(t, "127.0.0.1")),
		"cluster_pool_port": fmt.Sprint(freePort(t, "127.0.0.1")), "publish_port": fmt.Sprint(freePort(t, "127.0.0.1")),
		"admin_socket": filepath.Join(dir, "other.sock"),
	})
	out, err := n.Upgrade(ctx, adminapi.UpgradeRequest{}, quiet)
	require.NoError(t, err)
	defer n.endSuccessor(t, out.PID)
	client := adminapi.NewClient(filepath.Join(dir, "other.sock"))
	defer client.Close()
	eventually(t, "the new process at its new addresses", func() error {
		if v, err := client.Version(ctx); err != nil || v.PID != out.PID {
			return fmt.Errorf("%d instead of %d, %w", v.PID, out.PID, err)
		}
		answer, err := http.Get("http://" + health + "/livez")
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s", answer.Status)
		}
		return nil
	})
	check.NoError(t, <-n.done, "the old process")
	n.done = nil
	eventually(t, "the old admin socket to be gone", func() error {
		if _, err := os.Lstat(was); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", was, err)
		}
		return nil
	})
}

// endSuccessor ends the process that has taken over, which uses the node's directory until then.
func (n *testNode) endSuccessor(t *testing.T, pid int) {
	t.Helper()
	if pid == 0 {
		return
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	eventually(t, "the end of the new process", func() error {
		if err := syscall.Kill(pid, 0); err == nil {
			return fmt.Errorf("%d is there", pid)
		}
		return nil
	})
}
