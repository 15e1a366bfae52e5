//go:build integration

package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
)

// What operators have in their hands: the runner in three versions of Salt, HAProxy's configuration, the doctor, keys.
func testOperator(t *testing.T, c *lab.Cluster) {
	t.Run("runner", func(t *testing.T) { testRunner(t, c) })
	t.Run("leader", func(t *testing.T) { testLeaderEndpoint(t, c) })
	t.Run("status page", func(t *testing.T) { testStatusPage(t, c) })
	t.Run("haproxy", func(t *testing.T) { testHAProxyVerb(t, c) })
	t.Run("doctor", func(t *testing.T) { testDoctor(t, c) })
	t.Run("keys", func(t *testing.T) { testKeysVerb(t, c) })
	t.Run("minions", func(t *testing.T) { testMinionsVerb(t, c) })
}

// testRunner has each version's salt-run load the runner of packaging/runners, and compares with Salt's native shapes.
func testRunner(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	dir := presenceSettings(t)["runner_dirs"].([]string)[0]
	var ids []string
	for _, n := range c.Nodes {
		ids = append(ids, n.Name)
	}
	for _, n := range c.Nodes {
		conf := filepath.Join(n.Master.ConfigDir, "master.d", "zz-runner.conf")
		labtest.Must(t, os.WriteFile(conf, fmt.Appendf(nil, "runner_dirs: [%s]\n", dir), 0o644))
		t.Cleanup(func() { os.Remove(conf) })
		members := saltRun(ctx, t, n, "cluster.members")
		if got := keysOf(members); got != "leader_id learner_count learners membership_version node_id recently_demoted term unhealthy_voters voter_count voters" {
			t.Errorf("%s (Salt %s): cluster.members has %s", n.Name, n.Master.Version, got)
		}
		if members["node_id"] != n.Name || fmt.Sprint(members["voters"]) != fmt.Sprint(ids) ||
			members["voter_count"] != float64(len(ids)) ||
			!slices.Contains(ids, fmt.Sprint(members["leader_id"])) || members["membership_version"].(float64) < 1 {
			t.Errorf("%s: %v", n.Name, members)
		}
		ring := saltRun(ctx, t, n, "cluster.ring_info")
		if ring["is_clustered"] != true || ring["node_count"] != float64(len(ids)) ||
			fmt.Sprint(ring["nodes"]) != fmt.Sprint(ids) || len(ring) != 4 {
			t.Errorf("%s: %v", n.Name, ring)
		}
	}
	presentIs(t, c.Nodes, time.Minute, c.IDs()...) // they are behind one address, and all there
	n := c.Nodes[len(c.Nodes)-1]
	synced := saltRun(ctx, t, n, "cluster.sync_roots", "roots=file")
	if synced["status"] != "fan-out initiated" || synced["cluster_id"] != "lab" ||
		len(synced["nodes"].(map[string]any)) != len(ids) {
		t.Errorf("cluster.sync_roots: %v", synced)
	}
	// Without saltclusterd it says what to do.
	conf := filepath.Join(n.Master.ConfigDir, "master.d", "zz-runner.conf")
	labtest.Must(t, os.WriteFile(conf, fmt.Appendf(nil, "runner_dirs: [%s]\nsaltclusterd_socket: /nonexistent\n", dir),
		0o644))
	res, err := n.Master.Run(ctx, "salt-run", "cluster.members")
	labtest.Must(t, err)
	if res.Code == 0 || !strings.Contains(res.Output(), "systemctl status saltclusterd") {
		t.Errorf("without saltclusterd: exit code %d: %s", res.Code, res.Output())
	}
}

func saltRun(ctx context.Context, t *testing.T, n *lab.Node, args ...string) map[string]any {
	t.Helper()
	res, err := n.Master.Run(ctx, "salt-run", append([]string{"--out=json", "--log-level=quiet"}, args...)...)
	labtest.Must(t, err)
	var out map[string]any
	if err := json.Unmarshal([]byte(res.Stdout), &out); err != nil || res.Code != 0 {
		t.Fatalf("%s (Salt %s): salt-run %v: exit code %d, %v: %s", n.Name, n.Master.Version, args, res.Code, err,
			res.Output())
	}
	return out
}

func keysOf(m map[string]any) string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

// testLeaderEndpoint: one node says that it leads, the one that members names.
func testLeaderEndpoint(t *testing.T, c *lab.Cluster) {
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "one leader", func(ctx context.Context) error {
		all, err := c.Nodes[0].Daemon.Members(ctx)
		if err != nil {
			return err
		}
		var want, got []string
		for i, m := range all.Members {
			if m.Leader {
				want = append(want, m.ID)
			}
			status, err := healthOf(ctx, c.Nodes[i], "/leader")
			if err != nil {
				return err
			}
			if status == http.StatusOK {
				got = append(got, m.ID)
			}
		}
		if len(want) != 1 || !slices.Equal(got, want) {
			return fmt.Errorf("%v say that they lead, members names %v", got, want)
		}
		return nil
	}))
}

func healthOf(ctx context.Context, n *lab.Node, path string) (int, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return n.Host.Dial(ctx, network, addr)
		}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.Addr+":4580"+path, nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// testStatusPage: every node shows the whole cluster, with its minions and the job that was just run.
func testStatusPage(t *testing.T, c *lab.Cluster) {
	got, err := c.Nodes[0].Master.Pub(t.Context(), "*", "test.arg", "on the page")
	labtest.Must(t, err)
	labtest.Must(t, lab.AnsweredBy(got, c.IDs()...))
	want := []string{
		fmt.Sprintf("<strong>%d</strong> present", len(c.IDs())), "test.arg",
		fmt.Sprintf("%d of %d voters", len(c.Nodes), len(c.Nodes)), "complete",
	}
	for _, n := range c.Nodes {
		want = append(want, ">"+n.Name, "Salt</th>", n.Master.Version)
	}
	for _, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "the page of "+n.Name, func(ctx context.Context) error {
			page, err := pageOf(ctx, n)
			if err != nil {
				return err
			}
			for _, text := range want {
				if !strings.Contains(page, text) {
					return fmt.Errorf("it lacks %q:\n%s", text, page)
				}
			}
			if strings.Contains(page, "on the page") {
				return fmt.Errorf("it shows the arguments of a job")
			}
			return nil
		}))
	}
}

func pageOf(ctx context.Context, n *lab.Node) (string, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return n.Host.Dial(ctx, network, addr)
		}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.Addr+":4580/status", nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, raw)
	}
	return string(raw), err
}

// testHAProxyVerb: what is printed passes haproxy -c, and names every node; what the lab's own HAProxy has is the same.
func testHAProxyVerb(t *testing.T, c *lab.Cluster) {
	n := c.Nodes[0]
	res, err := n.Daemon.Ctl(t.Context(), "haproxy", "--check", "--minions", "1000")
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	for _, one := range c.Nodes {
		for _, port := range []string{"4505", "4506"} {
			if want := "server " + one.Name + " " + net.JoinHostPort(one.Addr, port) + " "; !strings.Contains(res.Stdout, want) {
				t.Errorf("%q is not in\n%s", want, res.Stdout)
			}
		}
	}
}

// testDoctor: a healthy cluster behind its HAProxy is healthy, and a stopped salt-master is not.
func testDoctor(t *testing.T, c *lab.Cluster) {
	if !c.Lab.Namespaces() {
		t.Skip("all hosts have the same ports")
	}
	ctx := t.Context()
	args := []string{"doctor", "--via", c.LB.Host().Addr, "--haproxy", c.LB.ConfigPath}
	for _, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "a healthy "+n.Name, func(ctx context.Context) error {
			res, err := n.Daemon.Ctl(ctx, args...)
			if err == nil && (res.Code != 0 || !strings.HasPrefix(res.Stdout, "0 failures, 0 warnings")) {
				err = fmt.Errorf("exit code %d: %s", res.Code, res.Output())
			}
			return err
		}))
	}
	n := c.Nodes[1]
	labtest.Must(t, n.Master.Kill())
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "what is wrong with "+n.Name, func(ctx context.Context) error {
		res, err := n.Daemon.Ctl(ctx, "doctor")
		if err == nil && (res.Code != 10 || !strings.Contains(res.Stdout, "the salt-master does not listen") ||
			!strings.Contains(res.Stdout, "systemctl start salt-master")) {
			err = fmt.Errorf("exit code %d: %s", res.Code, res.Output())
		}
		return err
	}))
	labtest.Must(t, n.Master.Start(ctx))
	labtest.Must(t, n.Master.WaitReady(ctx, time.Minute))
}

// testKeysVerb decides about a key on one node; the other nodes' masters have its file where it belongs.
func testKeysVerb(t *testing.T, c *lab.Cluster) {
	ctx, id := t.Context(), "operator-key"
	pub, err := os.ReadFile(filepath.Join(c.Nodes[0].Master.PKIDir(), "minions", c.Minions[0].ID))
	labtest.Must(t, err)
	labtest.Must(t, os.WriteFile(filepath.Join(c.Nodes[0].Master.PKIDir(), "minions_pre", id), pub, 0o644))
	first, last := c.Nodes[0].Daemon, c.Nodes[len(c.Nodes)-1]
	for _, s := range []struct{ verb, state, dir string }{
		{"", "pending", "minions_pre"}, {"accept", "accepted", "minions"}, {"reject", "rejected", "minions_rejected"},
		{"delete", "deleted", ""},
	} {
		if s.verb != "" {
			res, err := first.Ctl(ctx, "keys", s.verb, id, "--yes")
			labtest.Must(t, err)
			labtest.Must(t, res.Err())
		}
		labtest.Must(t, lab.Eventually(ctx, time.Minute, id+" "+s.state, func(ctx context.Context) error {
			var keys adminapi.Keys
			if err := last.Daemon.CtlJSON(ctx, &keys, "keys", "show", id); err != nil {
				return err
			}
			if len(keys.Keys) != 1 || keys.Keys[0].State != s.state || s.verb != "" && keys.Keys[0].Cause != "saltclusterctl" {
				return fmt.Errorf("%+v", keys.Keys)
			}
			for _, dir := range []string{"minions_pre", "minions", "minions_rejected"} {
				_, err := os.Stat(filepath.Join(last.Master.PKIDir(), dir, id))
				if (err == nil) != (dir == s.dir) {
					return fmt.Errorf("in %s: %v", dir, err)
				}
			}
			return nil
		}))
	}
}

// testMinionsVerb: every node names each minion as connected, and knows of each where it is and what it has returned
// last, wherever it has returned it.
func testMinionsVerb(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	since := time.Now().UTC().Format("20060102150405") // as job ids begin; a publication that salt gave up may run, too
	jid, addr := asyncAtLast(t, c.Nodes[1], "operator"), ""
	if c.Lab.Namespaces() { // else whoever connects has the address that it connects to
		addr = c.LB.Host().Addr
	}
	for _, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "the minions as "+n.Name+" knows them",
			func(ctx context.Context) error {
				var list struct {
					Minions []struct{ ID, Node, Address string }
				}
				if err := n.Daemon.CtlJSON(ctx, &list, "minions", "--connected", "--within", "10m"); err != nil {
					return err
				}
				connected := map[string]bool{}
				for _, m := range list.Minions {
					connected[m.ID] = true
				}
				for _, m := range c.Minions {
					if !connected[m.ID] {
						return fmt.Errorf("%s is not among %+v", m.ID, list)
					}
					if err := knownInFull(ctx, n, m, addr, since); err != nil {
						return err
					}
				}
				return nil
			}))
	}
	res, err := c.Nodes[0].Daemon.Ctl(ctx, "minions", c.Minions[0].ID)
	labtest.Must(t, err)
	if res.Code != 0 || !strings.Contains(res.Stdout, jid[:8]) || !strings.Contains(res.Stdout, "test.arg") {
		t.Errorf("exit code %d: %s", res.Code, res.Output())
	}
}

// knownInFull compares what a node says of a minion with what it is. Addr is where it comes from, as far as the node
// can know, empty when that is not certain; since is the id, or the beginning of it, that its latest job has at least.
func knownInFull(ctx context.Context, n *lab.Node, m *lab.Minion, addr, since string) error {
	var one struct {
		Keys        []adminapi.MinionKey
		Heard       *adminapi.MinionProtocol
		Connections []adminapi.Subscriber
		Owner       *adminapi.RingOwner
	}
	if err := n.Daemon.CtlJSON(ctx, &one, "minions", m.ID); err != nil {
		return err
	}
	h := one.Heard
	if h == nil || len(one.Keys) != 1 || one.Keys[0].State != adminapi.KeyAccepted || one.Owner == nil ||
		one.Owner.Node == "" {
		return fmt.Errorf("%s: %+v", m.ID, one)
	}
	if h.Node == "" || h.Address == "" || addr != "" && h.Address != addr || h.Version != 3 || h.Returned == nil ||
		h.Returned.JID < since {
		return fmt.Errorf("%s at %s: %+v, returned %+v", m.ID, addr, *h, h.Returned)
	}
	for _, sub := range one.Connections {
		if !strings.HasPrefix(sub.Remote, h.Address+":") || sub.Since.IsZero() {
			return fmt.Errorf("%s: %+v", m.ID, sub)
		}
	}
	if len(one.Connections) == 0 {
		return fmt.Errorf("%s has no connection", m.ID)
	}
	return nil
}
