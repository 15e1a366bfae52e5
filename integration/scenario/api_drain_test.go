//go:build integration

package scenario

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// testAPIDrain: a node that is drained gets no new connections of clients, and those there are go on. The same is so
// while its salt-master is down, whose own salt-api would be of no use.
func testAPIDrain(t *testing.T, s *apiSite) {
	ctx := t.Context()
	token := s.login(t, s.vip())
	home := s.home(t, token)
	other := s.Nodes[0]
	if other == home {
		other = s.Nodes[1]
	}
	stream := s.listen(t, s.vip()+"/events", token)
	pinged := func() { // by its own salt-master
		stream.await(t, "/ret/"+s.Minions[0].ID, func(ctx context.Context) error {
			_, err := home.Master.Pub(ctx, s.Minions[0].ID, "test.ping")
			return err
		})
	}
	pinged()

	must(t, other.Daemon, "drain", home.Name, "--timeout", "2m")
	s.seen(t, home, "NOLB")
	s.answers(t, token, http.StatusUnauthorized)
	elsewhere := s.login(t, s.vip())
	labtest.Must(t, s.pinged(s.must(t, http.MethodPost, s.vip()+"/", elsewhere, ping(nil))))
	if n := s.home(t, elsewhere); n == home {
		t.Errorf("a session was made on %s, which is drained", n.Name)
	}
	pinged()

	must(t, other.Daemon, "undrain", home.Name, "--timeout", "2m")
	s.seen(t, home, "UP")
	s.answers(t, token, http.StatusOK)

	labtest.Must(t, home.Master.Stop(ctx))
	s.seen(t, home, "DOWN")
	s.answers(t, token, http.StatusUnauthorized)
	s.login(t, s.vip())
	labtest.Must(t, home.Master.Start(ctx))
	labtest.Must(t, home.Master.WaitReady(ctx, 2*time.Minute))
	s.seen(t, home, "UP")

	api := s.apis[home.Name] // which does not listen: the next node is tried
	labtest.Must(t, api.Stop(ctx))
	s.login(t, s.vip())
	labtest.Must(t, api.Start(ctx))
	labtest.Must(t, api.WaitReady(ctx, 2*time.Minute))
}

// home is the node whose salt-api knows a session.
func (s *apiSite) home(t *testing.T, token string) *lab.Node {
	t.Helper()
	var known []*lab.Node
	for _, n := range s.Nodes {
		status, _, err := s.ask(t.Context(), http.MethodGet, s.at(n)+"/stats", token, nil)
		labtest.Must(t, err)
		switch status {
		case http.StatusOK:
			known = append(known, n)
		case http.StatusUnauthorized:
		default:
			t.Errorf("%s answers %d", n.Name, status)
		}
	}
	if len(known) != 1 {
		t.Fatalf("%d salt-apis know the session", len(known))
	}
	return known[0]
}

// seen waits until HAProxy thinks so of a node's salt-api.
func (s *apiSite) seen(t *testing.T, n *lab.Node, want string) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "HAProxy to see the salt-api of "+n.Name+" as "+want,
		func(ctx context.Context) error {
			states, err := s.LB.Servers(ctx, n.Name)
			if err == nil && states["salt-api"].Status != want {
				err = fmt.Errorf("it is %s", states["salt-api"].Status)
			}
			return err
		}))
}

// answers asks through HAProxy who knows a session.
func (s *apiSite) answers(t *testing.T, token string, want int) {
	t.Helper()
	status, _, err := s.ask(t.Context(), http.MethodGet, s.vip()+"/stats", token, nil)
	labtest.Must(t, err)
	if status != want {
		t.Errorf("through HAProxy the answer is %d, want %d", status, want)
	}
}
