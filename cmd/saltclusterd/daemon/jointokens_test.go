package daemon

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip"
	"saltclusterd/gossip/jointoken"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// newToken makes a token through a member, as saltclusterctl does.
func newToken(t *testing.T, on *testNode, id string) adminapi.Secret {
	t.Helper()
	tok := jointoken.New()
	var made adminapi.TokenCreated
	eventually(t, "a token", func() (err error) { // the others' gossip says what they understand
		made, err = on.CreateToken(t.Context(), adminapi.TokenRequest{ID: tok.ID(), Public: tok.Public(), Valid: time.Hour, Node: id})
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
	_, err := n.Join(ctx, adminapi.JoinRequest{Peer: through.addr, Token: token, Wait: wait, Timeout: time.Minute}, quiet)
	return err
}

func tokenID(token adminapi.Secret) string { return strings.Split(string(token), ".")[1] }

// A token takes one node in, whichever member it asks, and nobody else.
func TestJoinWithOneTimeToken(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, t.TempDir(), t.TempDir())
	a, b := nodes[0], nodes[1]
	used, bound, revoked := newToken(t, a, ""), newToken(t, b, "e"), newToken(t, a, "")
	c, d, e := startNode(t, "c", t.TempDir()), startNode(t, "d", t.TempDir()), startNode(t, "e", t.TempDir())
	if err := joinWith(t, c, b, used, true); err != nil {
		t.Fatal(err)
	}
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
		if err != nil || len(list.Tokens) != 2 || list.Tokens[0].UsedBy != "c" || list.Tokens[1].UsedBy != "e" || list.Tokens[0].State != adminapi.TokenUsed {
			return fmt.Errorf("%+v, %v", list.Tokens, err)
		}
		return nil
	})
	if _, err := b.RevokeToken(t.Context(), "nothing"); adminapi.CodeOf(err) != adminapi.CodeNotFound {
		t.Errorf("revoke of nothing: %v", err)
	}
	eventually(t, "members", wantRoles(a, "a voter alive", "b voter alive", "c voter alive", "e voter alive"))
}

// Two nodes with the same token, through two members at once: one is taken in.
func TestOneTokenTwoNodes(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, t.TempDir(), t.TempDir())
	a, b := nodes[0], nodes[1]
	token := newToken(t, a, "")
	c, d := startNode(t, "c", t.TempDir()), startNode(t, "d", t.TempDir())
	eventually(t, "the token on both members", func() error {
		for _, n := range nodes {
			if _, ok := n.current().cons.View().JoinToken(tokenID(token)); !ok {
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
	if got := len(a.current().cons.View().Members()); got != 3 {
		t.Errorf("%d members", got)
	}
}

func TestCreateTokenRefuses(t *testing.T) {
	t.Parallel()
	a := startNode(t, "a", t.TempDir())
	if _, err := a.CreateToken(t.Context(), adminapi.TokenRequest{}); adminapi.CodeOf(err) != adminapi.CodeNotMember {
		t.Errorf("without a cluster: %v", err)
	}
	if _, err := a.Tokens(t.Context()); adminapi.CodeOf(err) != adminapi.CodeNotMember {
		t.Errorf("without a cluster: %v", err)
	}
	if _, err := a.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: time.Minute}, quiet); err != nil {
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

func TestLevelKnown(t *testing.T) {
	newer := gossip.Member{State: gossip.Alive, Meta: node.Meta{Build: "2", Level: state.LevelJoin}}
	older := gossip.Member{State: gossip.Alive, Meta: node.Meta{Build: "1"}}
	down := gossip.Member{State: gossip.Dead}
	for _, tc := range []struct {
		name string
		seen map[node.ID]gossip.Member
		up   time.Duration
		want string
	}{
		{"all", map[node.ID]gossip.Member{"b": newer, "c": newer}, 0, ""},
		{"an older one", map[node.ID]gossip.Member{"b": newer, "c": older}, time.Hour, "of c does not know"},
		{"one that is down", map[node.ID]gossip.Member{"b": newer, "c": down}, time.Hour, ""},
		{"one that was not seen yet", map[node.ID]gossip.Member{"b": newer}, time.Second, "which version of saltclusterd runs on c"},
	} {
		err := levelKnown(state.LevelJoin, []node.ID{"b", "c"}, func(id node.ID) (gossip.Member, bool) {
			m, ok := tc.seen[id]
			return m, ok
		}, tc.up)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestLeastLevel(t *testing.T) {
	member := func(level uint16, s gossip.State) gossip.Member {
		return gossip.Member{State: s, Meta: node.Meta{Level: level}}
	}
	for _, tc := range []struct {
		name string
		seen map[node.ID]gossip.Member
		want uint16
	}{
		{"all", map[node.ID]gossip.Member{"b": member(state.Level, gossip.Alive), "c": member(state.Level+1, gossip.Alive)}, state.Level},
		{"an older one", map[node.ID]gossip.Member{"b": member(state.Level, gossip.Alive), "c": member(1, gossip.Alive)}, 1},
		{"one from before levels", map[node.ID]gossip.Member{"b": member(state.Level, gossip.Alive), "c": member(0, gossip.Alive)}, 0},
		{"one that went down", map[node.ID]gossip.Member{"b": member(state.Level, gossip.Alive), "c": member(state.Level, gossip.Dead)}, state.Level},
		{"one that nobody has heard of", map[node.ID]gossip.Member{"b": member(state.Level, gossip.Alive)}, 0},
	} {
		got := leastLevel([]node.ID{"b", "c"}, func(id node.ID) (gossip.Member, bool) { m, ok := tc.seen[id]; return m, ok })
		if got != tc.want {
			t.Errorf("%s: %d", tc.name, got)
		}
	}
}

// A cluster agrees on what all its members understand, and so does one that was born alone.
func TestLevelIsAgreed(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, t.TempDir(), t.TempDir())
	for _, n := range nodes {
		eventually(t, "the level on "+string(n.id), func() error {
			if now := n.current().cons.View().Level(); now != state.Level {
				return fmt.Errorf("it is %d", now)
			}
			return nil
		})
	}
}
