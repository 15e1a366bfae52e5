package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterd/takeover"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
)

// startReplaceable starts a node that this test program is to replace.
func startReplaceable(t *testing.T, id, dir string, settings ...string) *testNode {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := takeover.Process{Binary: self, Check: []string{"-test.run=^$", filepath.Join(dir, "conf")}}
	return startProcess(t, p, id, dir, append(settings,
		fmt.Sprint("agent_check_listen: 127.0.0.1:", freePort(t, "127.0.0.1")))...)
}

// mustRefuse checks that a process that serves no minions does not end for one that could not start.
func (n *testNode) mustRefuse(t *testing.T, cases []mistake) {
	t.Helper()
	conf, other := filepath.Join(n.dir, "conf"), filepath.Join(n.dir, "other.sock")
	good, err := os.ReadFile(conf)
	require.NoError(t, err)
	for _, c := range cases {
		values := map[string]string{"admin_socket": other}
		values[c.option] = c.value
		n.reconfigure(t, values)
		_, err := n.Upgrade(t.Context(), adminapi.UpgradeRequest{}, quiet)
		if err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v; want %q", c.what, err, c.reason)
		}
		if _, err := os.Lstat(other); err == nil {
			t.Errorf("%s: the socket of the other process is left over", c.what)
		}
		write(t, conf, string(good), 0o600)
	}
	select {
	case err := <-n.done:
		n.done = nil
		t.Fatalf("the process has ended: %v", err)
	default:
	}
	if r := n.upgrader.CheckReload(t.Context()); r.Level != health.Warn {
		t.Errorf("the health check does not report it: %+v", r)
	}
}

// mustBeReplaced checks that the process ends for one that can start.
func (n *testNode) mustBeReplaced(t *testing.T) {
	t.Helper()
	if _, err := n.Upgrade(t.Context(), adminapi.UpgradeRequest{}, quiet); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	require.NoError(t, err)
	if r, ok := errors.AsType[*takeover.RestartError](<-n.done); !ok || r.Binary != self {
		t.Errorf("Run ended with %v", r)
	}
	n.done = nil
}

func TestUpgrade_AddressInUseWithoutCluster(t *testing.T) {
	t.Parallel()
	n := startReplaceable(t, "m1", t.TempDir())
	a := takeAddresses(t, n.dir)
	n.mustRefuse(t, a.doors())
	n.reconfigure(t, map[string]string{ // what it has in another form is free then; it does not try the ports of members
		"agent_check_listen": strings.Replace(n.cfg.Health.AgentListen, "127.0.0.1", "0.0.0.0", 1),
		"cluster_pool_port":  a.tcpPort,
	})
	n.mustBeReplaced(t)
}

func TestUpgrade_AddressInUseWhileDrained(t *testing.T) {
	t.Parallel()
	n := startReplaceable(t, "m1", t.TempDir())
	if out, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest},
		quiet); err != nil || !out.Ready {
		t.Fatalf("%+v, %v", out, err)
	}
	if _, err := n.Drain(t.Context(), adminapi.DrainRequest{Wait: true, Force: true}, quiet); err != nil {
		t.Fatal(err)
	}
	a := takeAddresses(t, n.dir)
	n.mustRefuse(t, append(append(a.doors(), a.members()...), mistake{
		"what does not go with its membership", "cluster_witness", "true",
		"this node became a member when cluster_witness was false",
	}))
	n.reconfigure(t, map[string]string{"cluster_interface": "0.0.0.0", "agent_check_listen": "''",
		"health_listen": n.cfg.Health.AgentListen})
	n.mustBeReplaced(t)
}

// The list contains everything that a node binds, because nothing else is tried.
func TestListens_Complete(t *testing.T) {
	t.Parallel()
	n := startNode(t, "m1", t.TempDir(), fmt.Sprint("agent_check_listen: 127.0.0.1:", freePort(t, "127.0.0.1")))
	n.mustListenOn(t, false)
	if out, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest},
		quiet); err != nil || !out.Ready {
		t.Fatalf("%+v, %v", out, err)
	}
	n.mustListenOn(t, true)
}

// mustListenOn compares the list with what is bound.
func (n *testNode) mustListenOn(t *testing.T, member bool) {
	t.Helper()
	var listed []string
	for _, l := range takeover.ListAddresses(n.cfg, member) {
		listed = append(listed, l.Network+" "+l.Addr)
	}
	slices.Sort(listed)
	bound, _ := n.sockets.Export()
	bound = slices.DeleteFunc(bound, func(name string) bool { return name == takeover.LockName })
	if !slices.Equal(listed, bound) {
		t.Errorf("%s: listed are %q, bound %q", n.id, listed, bound)
	}
}
