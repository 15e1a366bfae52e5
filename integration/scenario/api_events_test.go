//go:build integration

package scenario

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// eventStream is what /events sends (SSE).
type eventStream struct {
	mu    sync.Mutex
	tags  []string
	ended error
}

// listen opens a stream, which ends with the test.
func (s *apiSite) listen(t *testing.T, url, token string) *eventStream {
	t.Helper()
	return s.stream(t, url, &http.Client{Transport: s.client.Transport}, token)
}

// stream is listen by a client that has a cookie, or with a token.
func (s *apiSite) stream(t *testing.T, url string, client *http.Client, token string) *eventStream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	labtest.Must(t, err)
	switch {
	case token == "":
	case len(token) < 64: // a session, as browsers send it
		req.AddCookie(&http.Cookie{Name: "session_id", Value: token})
	default:
		req.Header.Set("X-Auth-Token", token)
	}
	res, err := client.Do(req) // for as long as it lasts
	labtest.Must(t, err)
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		t.Fatalf("%s answers %d", url, res.StatusCode)
	}
	e := &eventStream{}
	go func() {
		defer res.Body.Close()
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if tag, ok := strings.CutPrefix(lines.Text(), "tag: "); ok {
				e.mu.Lock()
				e.tags = append(e.tags, tag)
				e.mu.Unlock()
			}
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.ended = fmt.Errorf("the stream has ended: %w", lines.Err())
	}()
	return e
}

// count is how many events came whose tag contains the text.
func (e *eventStream) count(text string) (n int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, tag := range e.tags {
		if strings.Contains(tag, text) {
			n++
		}
	}
	return n, e.ended
}

// await causes an event until one more has come than there were: a stream that has just begun may miss the first.
func (e *eventStream) await(t *testing.T, text string, cause func(context.Context) error) {
	t.Helper()
	before, err := e.count(text)
	labtest.Must(t, err)
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "an event with "+text, func(ctx context.Context) error {
		if err := cause(ctx); err != nil {
			return err
		}
		return lab.Eventually(ctx, 5*time.Second, "it to come", func(context.Context) error {
			n, err := e.count(text)
			if err == nil && n == before {
				err = fmt.Errorf("%d have come", n)
			}
			return err
		})
	}))
}

// testAPIEvents: a stream has what fires on the bus of its master. Events of minions on other nodes come there by the
// event policy, and what other masters fire, the results of their jobs for one, by the mirror, under a tag of its own.
func testAPIEvents(t *testing.T, s *apiSite) {
	ctx := t.Context()
	streams := map[string]*eventStream{}
	for i, n := range s.Nodes {
		_, token, err := s.token(ctx, s.at(s.Nodes[(i+1)%len(s.Nodes)]))
		labtest.Must(t, err)
		s.known(t, n, token)
		e := s.listen(t, s.at(n)+"/events", token)
		e.await(t, "lab/count/all/begin", s.send(s.Nodes[0], s.Minions[0], "lab/count/all/begin"))
		streams[n.Name] = e
	}
	for _, m := range s.Minions {
		labtest.Must(t, s.send(s.Nodes[0], m, "lab/count/all/"+m.ID)(ctx))
		labtest.Must(t, s.send(s.Nodes[0], m, "lab/count/owner/"+m.ID)(ctx))
	}
	for _, n := range s.Nodes {
		low := ping(credentials(map[string]any{"client": "local_async"}))
		job, _ := s.must(t, http.MethodPost, s.at(n)+"/run", "", low)[0].(map[string]any)
		for name, e := range streams {
			tag := fmt.Sprintf("salt/job/%s/", job["jid"])
			if name != n.Name {
				tag = "cluster/event/" + n.Name + "/" + tag
			}
			e.has(t, name, tag+"new", 1)
			for _, m := range s.Minions {
				e.has(t, name, tag+"ret/"+m.ID, 1)
			}
		}
	}
	for _, m := range s.Minions {
		owners := 0
		for name, e := range streams {
			e.has(t, name, "lab/count/all/"+m.ID, 1)
			owners += e.times("lab/count/owner/" + m.ID)
		}
		if owners != 1 {
			t.Errorf("%d streams have the event of %s that fires on one master", owners, m.ID)
		}
	}
}

// send has a minion send an event, as told by a node's master.
func (s *apiSite) send(n *lab.Node, m *lab.Minion, tag string) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := n.Master.Pub(ctx, m.ID, "event.send", tag)
		if err == nil && got[m.ID] != true {
			err = fmt.Errorf("event.send: %v", got)
		}
		return err
	}
}

// known waits until a node knows an eauth token.
func (s *apiSite) known(t *testing.T, n *lab.Node, token string) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "the token on "+n.Name, func(ctx context.Context) error {
		status, _, err := s.ask(ctx, http.MethodPost, s.at(n)+"/run", "", ping(map[string]any{"token": token}))
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		return err
	}))
}

// times is how many events came with this tag.
func (e *eventStream) times(tag string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, one := range e.tags {
		if one == tag {
			n++
		}
	}
	return n
}

// has waits for events of a tag.
func (e *eventStream) has(t *testing.T, name, tag string, want int) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), 30*time.Second, tag+" in the stream of "+name, func(context.Context) error {
		if n := e.times(tag); n != want {
			return fmt.Errorf("it came %d times", n)
		}
		return nil
	}))
}

// testAPIHook: what is posted to /hook is an event on the bus of one master, and its reactor runs once.
func testAPIHook(t *testing.T, s *apiSite) {
	const tag = "salt/netapi/hook/lab/count/"
	want := map[string]int{tag + "vip": 1}
	s.must(t, http.MethodPost, s.vip()+"/hook/lab/count/vip", s.login(t, s.vip()), map[string]any{"built": true})
	for _, n := range s.Nodes {
		s.must(t, http.MethodPost, s.at(n)+"/hook/lab/count/"+n.Name, s.login(t, s.at(n)), map[string]any{"built": true})
		want[tag+n.Name] = 1
	}
	counts := awaitCounts(t, s.Cluster, want)
	for _, n := range s.Nodes {
		if counts[n.Name][tag+n.Name] != 1 {
			t.Errorf("the reactor of %s did not run for what was posted there: %v", n.Name, counts)
		}
	}
}
