package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/cmd/saltclusterd/membership"

	"saltclusterd/gossip/jointoken"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/saltcrypt"
)

// newToken makes a token through a member, as saltclusterctl does.
func newToken(t *testing.T, on *testNode, id string) adminapi.Secret {
	t.Helper()
	tok := jointoken.New()
	var made adminapi.TokenCreated
	eventually(t, "a token", func() (err error) { // the others' gossip says what they understand
		made, err = on.CreateToken(t.Context(), adminapi.TokenRequest{ID: tok.ID(), Public: tok.Public(), Valid: time.Hour,
			Node: id})
		return err
	})
	tok, err := tok.For(made.ClusterPub)
	if err != nil || made.Token.State != adminapi.TokenOpen || len(made.Addresses) == 0 {
		t.Fatalf("%+v, %v", made, err)
	}
	return adminapi.Secret(tok.Text())
}

func joinWith(t *testing.T, n, through *testNode, token adminapi.Secret, wait bool) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := n.Join(ctx, adminapi.JoinRequest{Peer: through.addr, Token: token, Wait: wait, Timeout: longest}, quiet)
	return err
}

func tokenID(token adminapi.Secret) string { return strings.Split(string(token), ".")[1] }

// A token admits one node through any member, and no other node.
func TestJoin_OneTimeToken(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, t.TempDir(), t.TempDir())
	a, b := nodes[0], nodes[1]
	used, bound, revoked := newToken(t, a, ""), newToken(t, b, "e"), newToken(t, a, "")
	c, d, e := startNode(t, "c", t.TempDir()), startNode(t, "d", t.TempDir()), startNode(t, "e", t.TempDir())
	require.NoError(t, joinWith(t, c, b, used, true))
	if _, err := a.RevokeToken(t.Context(), tokenID(revoked)); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		token adminapi.Secret
		says  string
	}{
		{"one that was used", used, "was used by c"},
		{"one for another node", bound, "is for the node e"},
		{"one that was revoked", revoked, "revoked"},
		{"none", "sct1.k7m2q9x4ab", "not a join token"},
	} {
		eventually(t, tc.name, func() error { // a wrong proof makes the address wait
			err := joinWith(t, d, a, tc.token, false)
			switch {
			case adminapi.CodeOf(err) == adminapi.CodeUnreachable:
				return err
			case err == nil || !strings.Contains(err.Error(), tc.says):
				t.Errorf("%s: %v", tc.name, err)
			}
			return nil
		})
	}
	eventually(t, "the node that the token is for", func() error { return joinWith(t, e, a, bound, true) })
	eventually(t, "the list", func() error {
		list, err := b.Tokens(t.Context())
		if err != nil || len(list.Tokens) != 2 || list.Tokens[0].UsedBy != "c" || list.Tokens[1].UsedBy != "e" ||
			list.Tokens[0].State != adminapi.TokenUsed {
			return fmt.Errorf("%+v, %v", list.Tokens, err)
		}
		return nil
	})
	if _, err := b.RevokeToken(t.Context(), "nothing"); adminapi.CodeOf(err) != adminapi.CodeNotFound {
		t.Errorf("revoke of nothing: %v", err)
	}
	eventually(t, "members", wantRoles(a, "a voter alive", "b voter alive", "c voter alive", "e voter alive"))
}

// Two nodes join with the same token through two members at the same time: one is admitted.
func TestJoin_OneTokenTwoNodes(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, t.TempDir(), t.TempDir())
	a, b := nodes[0], nodes[1]
	token := newToken(t, a, "")
	c, d := startNode(t, "c", t.TempDir()), startNode(t, "d", t.TempDir())
	eventually(t, "the token on both members", func() error {
		for _, n := range nodes {
			if _, ok := n.tenure.Current().Consensus.View().JoinToken(tokenID(token)); !ok {
				return fmt.Errorf("%s does not know it", n.id)
			}
		}
		return nil
	})
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, pair := range [][2]*testNode{{c, a}, {d, b}} {
		wg.Go(func() { errs[i] = joinWith(t, pair[0], pair[1], token, false) })
	}
	wg.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Errorf("of two nodes with one token: %v, %v", errs[0], errs[1])
	}
	check.Equal(t, len(a.tenure.Current().Consensus.View().Members()), 3, "members")
}

func TestCreateToken_Refused(t *testing.T) {
	t.Parallel()
	a := startNode(t, "a", t.TempDir())
	if _, err := a.CreateToken(t.Context(), adminapi.TokenRequest{}); adminapi.CodeOf(err) != adminapi.CodeNotMember {
		t.Errorf("without a cluster: %v", err)
	}
	if _, err := a.Tokens(t.Context()); adminapi.CodeOf(err) != adminapi.CodeNotMember {
		t.Errorf("without a cluster: %v", err)
	}
	if _, err := a.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	tok := jointoken.New()
	good := adminapi.TokenRequest{ID: tok.ID(), Public: tok.Public(), Valid: time.Hour}
	for name, edit := range map[string]func(*adminapi.TokenRequest){
		"too short": func(r *adminapi.TokenRequest) { r.Valid = time.Second },
		"for ever":  func(r *adminapi.TokenRequest) { r.Valid = 1000 * time.Hour },
		"bad node":  func(r *adminapi.TokenRequest) { r.Node = "NODE" },
		"bad id":    func(r *adminapi.TokenRequest) { r.ID = "../x" },
		"no key":    func(r *adminapi.TokenRequest) { r.Public = nil },
	} {
		r := good
		edit(&r)
		if _, err := a.CreateToken(t.Context(), r); adminapi.CodeOf(err) != adminapi.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := a.CreateToken(t.Context(), good); err != nil {
		t.Error(err)
	}
	if _, err := a.CreateToken(t.Context(), good); adminapi.CodeOf(err) != adminapi.CodeRefused {
		t.Errorf("twice: %v", err)
	}
}

// A node does not found a cluster while a configured peer belongs to one.
func TestBootstrap_PeerIsMember(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	n := startNode(t, "a", t.TempDir(), "cluster_peers: ['"+l.Addr().String()+"', '127.0.0.1:1']")
	say := func(string, string, ...int) {}
	_, err = n.Bootstrap(t.Context(), adminapi.BootstrapRequest{}, say)
	if err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("%v", err)
	}
	if m, err := membership.ReadRecord(n.cfg.Paths.StateDir); m != nil || err != nil {
		t.Errorf("a member: %+v, %v", m, err)
	}
	_ = l.Close()
	if _, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{}, say); err != nil {
		t.Error(err)
	}
}

// Of nodes that bootstrap at the same time one founds a cluster, and the others join it.
func TestBootstrap_AtOnce(t *testing.T) {
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
		founded := 0
		for range nodes {
			switch err := <-done; adminapi.CodeOf(err) {
			case "":
				founded++
			case adminapi.CodeRefused, adminapi.CodeMember: // which has joined meanwhile
			default:
				t.Errorf("round %d: %v", round, err)
			}
		}
		if founded != 1 {
			t.Errorf("round %d: %d clusters", round, founded)
		}
		for _, n := range nodes {
			eventually(t, "one cluster", wantMembers(n, "a", "b", "c"))
		}
		for _, n := range nodes { // none before all are there: the first one may have the only vote
			n.halt()
		}
	}
}

// Bootstrap reports the numbers of the minion keys that the cluster has adopted.
func TestBootstrap_ReportsKeys(t *testing.T) {
	t.Parallel()
	a := newLaidNode(t, "a")
	pub := minionKey(t)
	for i, dir := range []string{"minions", "minions", "minions_pre", "minions_rejected"} {
		path := filepath.Join(a.dir, "etc/salt/pki/master", dir, fmt.Sprint("web", i))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		write(t, path, pub, 0o644)
	}
	var mu sync.Mutex
	var said []string
	note := func(step, message string, _ ...int) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, step+": "+message)
	}
	if _, err := a.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest}, note); err != nil {
		t.Fatal(err)
	}
	if want := "keys: copied to the cluster: minion keys, 2 accepted, 1 pending, 1 rejected"; !slices.Contains(said, want) {
		t.Errorf("said %q", said)
	}
	check.Equal(t, a.tenure.Current().Consensus.View().KeyCount(), 4, "keys")
}

// Masters that sign their public key (master_sign_pubkey) since their saltclusterd was started: who joins gets the key
// of the member that admits it, a key of its own is replaced only on demand, and verify says where masters differ.
func TestJoin_SigningKey(t *testing.T) {
	t.Parallel()
	a := cluster(t, t.TempDir())[0]
	signs := func(n *testNode) {
		text, err := os.ReadFile(n.cfg.Salt.Config)
		require.NoError(t, err)
		write(t, n.cfg.Salt.Config, string(text)+"master_sign_pubkey: True\n", 0o644)
	}
	path := func(n *testNode) string { return filepath.Join(n.master.PkiDir, "master_sign.pem") }
	place := func(n *testNode) string {
		key, err := saltcrypt.GenerateMasterKey(2048)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(n.master.PkiDir, 0o700))
		write(t, path(n), string(key.PEM()), 0o400)
		return string(key.PEM())
	}
	signs(a)
	want := place(a)
	a.tenure.Current().service().master.RereadOptions()
	for _, tc := range []struct {
		id         string
		has        bool
		replace    bool
		gets, kept bool // the cluster's key; beside it its own
	}{{id: "b", gets: true}, {id: "c", has: true, replace: true, gets: true, kept: true}, {id: "d", has: true}} {
		n := startNode(t, tc.id, t.TempDir())
		signs(n)
		own := ""
		if tc.has {
			own = place(n)
		}
		_, err := n.Join(t.Context(), adminapi.JoinRequest{Peer: a.addr, ReplaceKey: tc.replace, Wait: true, Timeout: longest}, quiet)
		require.NoError(t, err)
		n.tenure.Current().service().master.RereadOptions()
		if got, err := os.ReadFile(path(n)); err != nil || (string(got) == want) != tc.gets || !tc.gets && string(got) != own {
			t.Errorf("%s: it has the cluster's: %v, %v", tc.id, string(got) == want, err)
		}
		backups, err := filepath.Glob(path(n) + ".*")
		if err != nil || (len(backups) == 1) != tc.kept {
			t.Fatalf("%s: beside it %v, %v", tc.id, backups, err)
		}
		if tc.kept {
			if got, err := os.ReadFile(backups[0]); err != nil || string(got) != own {
				t.Errorf("%s: %s is not its own: %v", tc.id, backups[0], err)
			}
		}
		eventually(t, "verify", func() error {
			v, err := n.Verify(t.Context())
			if err != nil {
				return err
			}
			i := slices.IndexFunc(v.Sections, func(s adminapi.VerifiedSection) bool { return s.Name == "signing key" })
			s := v.Sections[i]
			if v.Complete() && s.Items == 1 && len(s.Differences) == 0 == tc.gets &&
				(tc.gets || s.Differences[0].Nodes["b"] != s.Differences[0].Nodes["d"]) {
				return nil
			}
			return fmt.Errorf("%+v", s)
		})
	}
}
