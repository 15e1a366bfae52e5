//go:build integration

package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/integration/play"
)

const (
	answerBytes = 64 << 10 // per second; twenty times that may go at once
	mostNames   = 20_000   // resources that a minion may have
)

// TestBudget is what one minion with a valid key would have all of: workers of a stock master, what is sent back,
// places on its disk. It is bounded, and another minion is answered meanwhile.
func TestBudget(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("takes minutes; run: make test-budget")
	}
	ctx := t.Context()
	l := labtest.New(t, lab.Options{})
	c, err := l.NewCluster(ctx, lab.ClusterSpec{
		Masters: lab.Versions, Minions: lab.Versions[2:],
		MasterSettings: lab.Settings{"timeout": 5, "gather_job_timeout": 15, "worker_threads": 3,
			"peer": map[string]any{"greedy": []string{"test.sleep"}}},
		DaemonSettings: lab.Settings{"health_trusted": []string{"0.0.0.0/0"}, "minion_answer_bytes": answerBytes},
	})
	labtest.Must(t, err)
	labtest.Must(t, c.Up(ctx))
	var met []*play.Minion
	for _, id := range []string{"greedy", "other", "keen"} {
		m, err := play.New(c.Minions[0].Host(), id)
		labtest.Must(t, err)
		admitPlayed(t, c, m)
		met = append(met, m)
	}
	for _, n := range c.Nodes {
		for _, m := range met {
			_, err := m.SignIn(ctx, n.Addr)
			labtest.Must(t, err)
		}
		for _, s := range []struct {
			name string
			test func(*testing.T, *lab.Cluster, *lab.Node, *play.Minion, *play.Minion)
			of   *play.Minion // who would have all
		}{
			{"workers that wait", testWaitingWorkers, met[0]},
			{"resources", testManyResources, met[0]},
			{"chunks of a file", testManyChunks, met[0]},
			{"pillars", testManyPillars, met[2]},
		} {
			if !t.Run(n.Master.Version+"/"+s.name, func(t *testing.T) { s.test(t, c, n, s.of, met[1]) }) {
				t.Log(l.Tails(40))
			}
		}
	}
}

// pillarOf asks for a pillar that has text in it, which a stock master renders.
func pillarOf(ctx context.Context, m *play.Minion, n *lab.Node, text string) ([]byte, error) {
	return m.Request(ctx, n.Addr, "_pillar", map[string]any{
		"grains": map[string]any{"id": m.ID, "os": "lab"}, "saltenv": nil, "pillarenv": nil, "ver": "2",
		"pillar_override": map[string]any{"lab": text},
	})
}

// Of three workers calls of one minion that wait would take all. It gets one for them; what another minion asks is
// dealt to all workers in turn, and two parts of three are answered while the first call waits on.
func testWaitingWorkers(t *testing.T, c *lab.Cluster, n *lab.Node, greedy, other *play.Minion) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	held := func() float64 { return metricSum(t, n, "saltcluster_master_held_requests_total") }
	before := held()
	type end struct {
		who string
		err error
	}
	ends := make(chan end, 6)
	for range 3 {
		go func() {
			_, err := greedy.Request(ctx, n.Addr, "minion_publish", map[string]any{
				"tgt": c.Minions[0].ID, "tgt_type": "glob", "fun": "test.sleep", "arg": []any{12}, "ret": "", "form": "clean",
				"tmo": 20, "timeout": 20,
			})
			ends <- end{greedy.ID, err}
		}()
	}
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "calls of one minion to be held", func(context.Context) error {
		if held() == before {
			return errors.New("none is")
		}
		return nil
	}))
	for range 3 {
		go func() {
			_, err := pillarOf(ctx, other, n, "x")
			ends <- end{other.ID, err}
		}()
	}
	var order []string
	for range 6 {
		e := <-ends
		if e.err != nil {
			t.Errorf("%s: %v", e.who, e.err)
		}
		order = append(order, e.who)
	}
	if order[0] != other.ID || order[1] != other.ID {
		t.Errorf("answered were %q", order)
	}
	t.Logf("answered in this order: %q; held: %v", order, held()-before)
}

// A master needs 2 ms for each name, each time they are registered, and each master that knows resources has them.
func testManyResources(t *testing.T, _ *lab.Cluster, n *lab.Node, greedy, other *play.Minion) {
	if !strings.HasPrefix(n.Master.Version, "3008") {
		t.Skip("masters of this version know no resources")
	}
	ask := func(names int) []byte {
		managed := make([]any, names)
		for i := range managed {
			managed[i] = fmt.Sprintf("lab%05d", i)
		}
		return wallSaid(t, greedy, n, "_register_resources", map[string]any{"resources": map[string]any{"ssh": managed}})
	}
	wallMoved(t, n, "some resources", "budget", "", func() {
		if got := ask(mostNames / 10); got == nil || bytes.Equal(got, []byte{0x80}) {
			t.Errorf("some resources: answered %.40q", got)
		}
	})
	wallMoved(t, n, "one resource too many", "budget", "refused", func() {
		if got := ask(mostNames + 1); !bytes.Equal(got, []byte{0x80}) {
			t.Errorf("one resource too many: answered %.40q", got)
		}
	})
	if _, err := pillarOf(t.Context(), other, n, "x"); err != nil {
		t.Errorf("another minion's pillar: %v", err)
	}
}

// What this program answers by itself.
func testManyChunks(t *testing.T, _ *lab.Cluster, n *lab.Node, greedy, other *play.Minion) {
	chunk := func(ctx context.Context, m *play.Minion) ([]byte, error) {
		return m.Request(ctx, n.Addr, "_serve_file",
			map[string]any{"path": "demo/files/big.bin", "saltenv": "base", "loc": 0})
	}
	tooMuch(t, n, greedy, chunk)
	if _, err := chunk(t.Context(), other); err != nil {
		t.Errorf("another minion: %v", err)
	}
}

// What a master answers.
func testManyPillars(t *testing.T, _ *lab.Cluster, n *lab.Node, greedy, other *play.Minion) {
	text := strings.Repeat("x", 1<<20)
	big := func(ctx context.Context, m *play.Minion) ([]byte, error) { return pillarOf(ctx, m, n, text) }
	tooMuch(t, n, greedy, big)
	if _, err := big(t.Context(), other); err != nil {
		t.Errorf("another minion: %v", err)
	}
}

// tooMuch asks until an answer is not given, which must be soon, and once more when the budget has come together again.
func tooMuch(t *testing.T, n *lab.Node, m *play.Minion, ask func(context.Context, *play.Minion) ([]byte, error)) {
	t.Helper()
	before, got := wallFound(t, n, "budget"), 0
	for wallFound(t, n, "budget") == before {
		if got > 3*20*answerBytes {
			t.Fatalf("%d bytes were answered", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		answered := make(chan error, 1)
		go func() {
			b, err := ask(ctx, m)
			if err == nil {
				got += len(b)
			}
			answered <- err
		}()
		err := lab.Eventually(ctx, time.Minute, "an answer or a refusal", func(context.Context) error {
			select {
			case err := <-answered:
				answered <- err
				return nil
			default:
			}
			if wallFound(t, n, "budget") == before {
				return errors.New("neither")
			}
			return nil
		})
		refused := wallFound(t, n, "budget") > before
		cancel()
		if said := <-answered; err != nil || said != nil && !refused {
			t.Fatalf("after %d bytes: %v, %v", got, err, said)
		}
	}
	if got < answerBytes {
		t.Errorf("%d bytes were answered", got)
	}
	labtest.Must(t, lab.Eventually(t.Context(), 2*time.Minute, "the budget to come together again",
		func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			_, err := ask(ctx, m)
			return err
		}))
	t.Logf("%d bytes were answered, and more later", got)
}
