package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/drain"
	"saltclusterd/cmd/saltclusterd/joining"
	"saltclusterd/cmd/saltclusterd/leadership"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/recovery"
	"saltclusterd/cmd/saltclusterd/removal"
	"saltclusterd/cmd/saltclusterd/takeover"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/saltcrypt"
)

const testSecret = "a-test-secret-0123456789-abcdef"

// longest is for how long a test waits for an operation at most: what takes seconds takes minutes on a busy machine.
const longest = 5 * time.Minute

// testNode is a daemon in a directory of its own, without a salt-master behind it.
type testNode struct {
	*Daemon
	*joining.Joiner
	*recovery.Recoverer
	joining.TokenVerbs
	dir  string
	addr string // of the peer port
	done chan error
	stop context.CancelFunc
}

// Transfer makes another node lead, as an operator does.
func (n *testNode) Transfer(ctx context.Context, r adminapi.TransferRequest,
	p admin.Progress) (adminapi.Outcome, error) {
	return leadership.Verbs{Of: ofMember(n.Daemon, func(m *member) *leadership.Control { return m.leadership })}.Transfer(ctx, r, p)
}

// Join is that of the node, repeated while its member does not answer in time: on a busy machine a proof takes longer
// than operators wait.
func (n *testNode) Join(ctx context.Context, r adminapi.JoinRequest, p admin.Progress) (adminapi.Outcome, error) {
	for tries := 1; ; tries++ {
		out, err := n.Joiner.Join(ctx, r, p)
		if adminapi.CodeOf(err) != adminapi.CodeUnreachable || tries == 5 || !backoff.Sleep(ctx, time.Second) {
			return out, err
		}
	}
}

// Drain drains a node, as an operator does.
func (n *testNode) Drain(ctx context.Context, r adminapi.DrainRequest, p admin.Progress) (adminapi.Outcome, error) {
	return drain.Verbs{Of: ofMember(n.Daemon, func(m *member) *drain.Cluster { return m.drains })}.Drain(ctx, r, p)
}

// Undrain takes a drain back, as an operator does.
func (n *testNode) Undrain(ctx context.Context, r adminapi.UndrainRequest, p admin.Progress) (adminapi.Outcome, error) {
	return drain.Verbs{Of: ofMember(n.Daemon, func(m *member) *drain.Cluster { return m.drains })}.Undrain(ctx, r, p)
}

// Remove removes a node, as an operator does.
func (n *testNode) Remove(ctx context.Context, r adminapi.RemoveRequest, p admin.Progress) (adminapi.Outcome, error) {
	return removal.Verbs{Of: ofMember(n.Daemon, func(m *member) *removal.Remover { return m.remover })}.Remove(ctx, r, p)
}

// testPorts gives each test process ports of its own, below those the kernel takes for outgoing connections.
var testPorts = struct {
	sync.Mutex
	next int
}{next: 10000 + os.Getpid()%100*200}

// freePort returns a port of addr that nobody uses now and that was not returned before.
func freePort(t *testing.T, addr string) int {
	t.Helper()
	testPorts.Lock()
	defer testPorts.Unlock()
	for range 2000 {
		testPorts.next++
		if testPorts.next >= 32000 {
			testPorts.next = 10000
		}
		if l, err := net.Listen("tcp", net.JoinHostPort(addr, strconv.Itoa(testPorts.next))); err == nil {
			l.Close()
			return testPorts.next
		}
	}
	t.Fatal("no free port")
	return 0
}

// startNode starts a daemon on 127.0.0.1 with ports of its own. Settings are lines for its configuration file.
func startNode(t *testing.T, id, dir string, settings ...string) *testNode {
	t.Helper()
	return startProcess(t, takeover.Process{}, id, dir, settings...)
}

// startProcess is startNode with what the daemon is to know of its process.
func startProcess(t *testing.T, p takeover.Process, id, dir string, settings ...string) *testNode {
	t.Helper()
	salt := filepath.Join(dir, "salt-master")
	if _, err := os.Stat(salt); errors.Is(err, fs.ErrNotExist) {
		write(t, salt, "#!/bin/sh\necho 'salt-master 3008.3 (Argon)'\n", 0o755)
		write(t, filepath.Join(dir, "master"), fmt.Sprintf(
			"root_dir: %s\ninterface: 127.0.0.2\npublish_port: %d\nret_port: %d\nmaster_id: %s\n",
			dir, freePort(t, "127.0.0.2"), freePort(t, "127.0.0.2"), id), 0o644)
		write(t, filepath.Join(dir, "conf"), strings.Join(append([]string{
			"id: " + id, "interface: 127.0.0.1", "cluster_id: test", "cluster_secret: " + testSecret,
			"cluster_interface: 127.0.0.1", "cluster_advertise: 127.0.0.1", "health_listen: ''", "drain_time: 0s",
			fmt.Sprintf("publish_port: %d", freePort(t, "127.0.0.1")), fmt.Sprintf("ret_port: %d", freePort(t, "127.0.0.1")),
			fmt.Sprintf("cluster_pool_port: %d", freePort(t, "127.0.0.1")),
			"state_dir: " + dir + "/state", "run_dir: " + dir + "/run", "salt_config: " + dir + "/master",
			"salt_master_command: " + salt,
		}, settings...), "\n"), 0o600)
	}
	cfg, err := config.Load(filepath.Join(dir, "conf"))
	require.NoError(t, err)
	w := &testWriter{t: t, id: id}
	t.Cleanup(func() { w.over.Store(true) })
	log := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
	d, err := New(cfg, "test", log)
	require.NoError(t, err)
	d.aloneAfter, d.formerEvery = 2*time.Second, 200*time.Millisecond
	d.SetProcess(p)
	ctx, cancel := context.WithCancel(t.Context())
	n := &testNode{
		Daemon: d, Joiner: d.joiner, Recoverer: d.newRecoverer(),
		TokenVerbs: joining.TokenVerbs{Of: ofMember(d, func(m *member) *joining.Admission { return m.admission })},
		dir:        dir, addr: cfg.PeerAdvertise(nil), done: make(chan error, 1), stop: cancel,
	}
	ready := make(chan struct{})
	go func() { n.done <- d.Run(ctx, func() { close(ready) }) }()
	t.Cleanup(n.halt)
	select {
	case <-ready:
	case err := <-n.done:
		n.done = nil // there is no end to wait for any more
		t.Fatalf("%s: %v", id, err)
	case <-time.After(30 * time.Second):
		t.Fatalf("%s does not start", id)
	}
	return n
}

// halt stops the daemon and waits for it.
func (n *testNode) halt() {
	n.stop()
	if n.done != nil {
		<-n.done
		n.done = nil
	}
}

type testWriter struct {
	t    *testing.T
	id   string
	over atomic.Bool // what the timers of a process that has handed over say later has no test to go to
}

func (w *testWriter) Write(b []byte) (int, error) {
	if !w.over.Load() {
		w.t.Logf("%s: %s", w.id, strings.TrimSpace(string(b)))
	}
	return len(b), nil
}

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), mode))
}

func quiet(string, string, ...int) {}

// files lists what lies under dir, with contents, but for what every start may touch.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		out[path] = string(b)
		return err
	})
	require.NoError(t, err)
	return out
}

func eventually(t *testing.T, what string, cond func() error) {
	t.Helper()
	patience.WaitNil(t, func() error {
		if err := cond(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
}

// roles lists a node's members as "id role state".
func roles(n *testNode) ([]string, error) {
	m, err := n.Members(context.Background())
	if err != nil {
		return nil, err
	}
	var out []string
	for _, row := range m.Members {
		out = append(out, fmt.Sprintf("%s %s %s", row.ID, row.Role, row.State))
	}
	return out, nil
}

func wantRoles(n *testNode, want ...string) func() error {
	return func() error {
		got, err := roles(n)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("%s sees %q, want %q", n.id, got, want)
		}
		return err
	}
}

func TestThreeNodesBecomeOneCluster(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	a, b, c := startNode(t, "a", dirs[0]), startNode(t, "b", dirs[1]), startNode(t, "c", dirs[2])
	ctx := t.Context()
	if _, err := a.Members(ctx); adminapi.CodeOf(err) != adminapi.CodeNotMember {
		t.Fatalf("a node without a cluster: %v", err)
	}
	out, err := a.Bootstrap(ctx, adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet)
	if err != nil || out.Role != adminapi.RoleVoter || !out.Ready {
		t.Fatalf("bootstrap: %+v, %v", out, err)
	}
	if _, err := a.Bootstrap(ctx, adminapi.BootstrapRequest{}, quiet); adminapi.CodeOf(err) != adminapi.CodeMember {
		t.Fatalf("a second birth: %v", err)
	}
	for _, n := range []*testNode{b, c} {
		out, err := n.Join(ctx, adminapi.JoinRequest{Peer: a.addr, Wait: true, Timeout: longest}, quiet)
		if err != nil || out.Role != adminapi.RoleVoter || !out.Ready {
			t.Fatalf("join of %s: %+v, %v", n.id, out, err)
		}
	}
	for _, n := range []*testNode{a, b, c} {
		eventually(t, "members", wantRoles(n, "a voter alive", "b voter alive", "c voter alive"))
	}
	sameIdentity(t, a, b, c)

	b.halt()
	for _, n := range []*testNode{a, c} {
		eventually(t, "a node that is down", func() error {
			got, err := roles(n)
			if err == nil && !(len(got) == 3 && strings.HasPrefix(got[1], "b voter ") && got[1] != "b voter alive") {
				err = fmt.Errorf("%s sees %q", n.id, got)
			}
			return err
		})
	}
	b = startNode(t, "b", dirs[1]) // finds back by what it remembers
	eventually(t, "the node that came back", wantRoles(b, "a voter alive", "b voter alive", "c voter alive"))
	for _, n := range []*testNode{c, b, a} {
		n.halt()
	}
	// A power loss of all: everybody serves again by itself.
	a, b, c = startNode(t, "a", dirs[0]), startNode(t, "b", dirs[1]), startNode(t, "c", dirs[2])
	for _, n := range []*testNode{a, b, c} {
		eventually(t, "after the power loss", wantRoles(n, "a voter alive", "b voter alive", "c voter alive"))
	}
}

// sameIdentity checks that every node's master got the cluster's key.
func sameIdentity(t *testing.T, nodes ...*testNode) {
	t.Helper()
	var first string
	for _, n := range nodes {
		pem, err := os.ReadFile(filepath.Join(n.master.PkiDir, "master.pem"))
		require.NoError(t, err)
		key, err := saltcrypt.ParseMasterKey(pem)
		require.NoError(t, err)
		if first == "" {
			first = key.PublicText()
		}
		if key.PublicText() != first {
			t.Errorf("%s has another identity", n.id)
		}
	}
}

func TestRefusedJoinsChangeNothing(t *testing.T) {
	t.Parallel()
	a := startNode(t, "a", t.TempDir())
	ctx := t.Context()
	if _, err := a.Bootstrap(ctx, adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name     string
		settings []string
		req      adminapi.JoinRequest
		option   string // that the sentence must name
	}{
		{name: "wrong cluster", settings: []string{"cluster_id: other"}, option: "cluster_id"},
		{name: "wrong fingerprint", req: adminapi.JoinRequest{PubFingerprint: strings.Repeat("ab", 32)},
			option: "cluster_pub_fingerprint"},
		{name: "nobody there", req: adminapi.JoinRequest{Peer: "127.0.0.1:1"}, option: "127.0.0.1:1"},
		{name: "short secret", req: adminapi.JoinRequest{Secret: "short"}, option: "cluster_secret"},
		// The last one, for the member makes the address wait after it.
		{name: "wrong secret", req: adminapi.JoinRequest{Secret: "another-secret-0123456789-abcdef"},
			option: "cluster_secret"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			n := startNodeWith(t, "b", dir, tc.settings)
			before := files(t, dir)
			if tc.req.Peer == "" {
				tc.req.Peer = a.addr
			}
			_, err := n.Join(ctx, tc.req, quiet)
			if err == nil || !strings.Contains(err.Error(), tc.option) {
				t.Fatalf("join: %v; want a sentence about %s", err, tc.option)
			}
			after := files(t, dir)
			for path, content := range after {
				if before[path] != content {
					t.Errorf("%s was written", path)
				}
			}
		})
	}
	got, err := roles(a)
	if err != nil || !slices.Equal(got, []string{"a voter alive"}) {
		t.Errorf("the cluster has %q, %v", got, err)
	}
}

// A master that has minions of its own joins only when they stay content, unless its operator says that they do not
// matter.
func TestJoin_OwnMinions(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a := startNode(t, "a", t.TempDir())
	if _, err := a.Bootstrap(ctx, adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	_, private, public, err := membership.ReadIdentity(a.cfg.Cluster.PKIDir)
	require.NoError(t, err)
	key := func() *saltcrypt.MasterKey {
		k, err := saltcrypt.GenerateMasterKey(2048)
		require.NoError(t, err)
		return k
	}
	web, own := key().PublicText(), key()
	dir := t.TempDir()
	b := startNode(t, "b", dir)
	pki := b.master.PkiDir
	put := func(name, text string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(pki, name)), 0o755))
		write(t, filepath.Join(pki, name), text, 0o600)
	}
	put("minions/web1", web)
	put("minions_pre/web2", web)
	put("master.pem", string(own.PEM()))
	put("master.pub", own.PublicText())
	refused := func(r adminapi.JoinRequest, word string) {
		t.Helper()
		r.Peer = a.addr
		before := files(t, dir)
		_, err := b.Join(ctx, r, quiet)
		if adminapi.CodeOf(err) != adminapi.CodeRefused || !strings.Contains(err.Error(), word) {
			t.Fatalf("%+v: %v", r, err)
		}
		if after := files(t, dir); !maps.Equal(before, after) {
			t.Errorf("%+v: files were written", r)
		}
		if got, err := roles(a); err != nil || !slices.Equal(got, []string{"a voter alive"}) {
			t.Errorf("the cluster has %q, %v", got, err)
		}
	}
	refused(adminapi.JoinRequest{KeysPending: true}, "another master.pem")
	refused(adminapi.JoinRequest{ReplaceKey: true}, "has not accepted 1 of the 1 minion keys")
	put("master.pem", string(private))
	put("master.pub", string(public))
	refused(adminapi.JoinRequest{}, "of the 1 minion keys")

	view := func(id string) string {
		got, err := a.KeysOf(ctx, adminapi.KeysOfRequest{IDs: []string{id}})
		require.NoError(t, err)
		var states []string
		for _, k := range got.Keys {
			states = append(states, k.State)
		}
		return strings.Join(states, " ")
	}
	done, err := a.PutKeys(ctx, adminapi.PutKeysRequest{From: "b", Seen: 99, Keys: []adminapi.PutKey{
		{ID: "web1", State: adminapi.KeyAccepted, Pub: web, Denied: own.PublicText()},
		{ID: "web3", State: adminapi.KeyAccepted, Pub: "?"},
		{ID: "web4", Denied: web, BaseRev: 3},
	}})
	if err != nil || done.Keys[0].Error != "" || done.Keys[1].Error == "" || done.Keys[2].Error == "" {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := view("web1") + ", " + view("web3") + view("web4"); got != "accepted denied, " {
		t.Errorf("the cluster has %s", got)
	}
	if _, err := b.Join(ctx, adminapi.JoinRequest{Peer: a.addr, Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the key that is pending there", func() error {
		if got := view("web1") + ", " + view("web2"); got != "accepted denied, pending" {
			return errors.New(got)
		}
		return nil
	})
}

// startNodeWith is startNode with settings that replace the usual ones of the same name.
func startNodeWith(t *testing.T, id, dir string, settings []string) *testNode {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "conf.d"), 0o755))
	if len(settings) > 0 {
		write(t, filepath.Join(dir, "conf.d", "test.conf"), strings.Join(settings, "\n")+"\n", 0o600)
	}
	return startNode(t, id, dir)
}

// A node that lost its state_dir cannot bootstrap a second cluster.
func TestBootstrap_StateLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := startNode(t, "a", dir)
	if _, err := a.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the key directory's marker", func() error {
		markers, err := filepath.Glob(filepath.Join(a.master.PkiDir, ".saltclusterd-keys.*"))
		if err == nil && len(markers) == 0 {
			err = errors.New("there is none")
		}
		return err
	})
	a.halt()
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "state")))
	a = startNode(t, "a", dir)
	_, err := a.Bootstrap(t.Context(), adminapi.BootstrapRequest{}, quiet)
	if adminapi.CodeOf(err) != adminapi.CodeRefused || !strings.Contains(adminapi.HintOf(err), "join") {
		t.Fatalf("bootstrap: %v", err)
	}
}

func TestRun_StateOfAnotherNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := startNode(t, "a", dir)
	if _, err := a.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	a.halt()
	for _, tc := range []struct{ from, to, option string }{
		{"id: a", "id: z", "id"}, {"cluster_id: test", "cluster_id: other", "cluster_id"},
	} {
		conf, err := os.ReadFile(filepath.Join(dir, "conf"))
		require.NoError(t, err)
		write(t, filepath.Join(dir, "conf"), strings.Replace(string(conf), tc.from, tc.to, 1), 0o600)
		cfg, err := config.Load(filepath.Join(dir, "conf"))
		require.NoError(t, err)
		d, err := New(cfg, "test", slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		if err := d.Run(t.Context(), func() {}); err == nil || !strings.Contains(err.Error(), tc.option) {
			t.Errorf("%s: %v", tc.to, err)
		}
		write(t, filepath.Join(dir, "conf"), string(conf), 0o600)
	}
}
