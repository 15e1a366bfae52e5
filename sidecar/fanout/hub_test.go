package fanout

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/signal"
)

type captured struct {
	mu   sync.Mutex
	pubs []edge.Publication

	newcomers int
	moved     int
	arrived   chan struct{}
	given     []given
}

func (c *captured) Publish(p edge.Publication) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pubs = append(c.pubs, p)
}

func (c *captured) Arrived() <-chan struct{} { return c.arrived }

func (c *captured) Newcomers() (come, moved []edge.Newcomer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	come, moved = make([]edge.Newcomer, c.newcomers), make([]edge.Newcomer, c.moved)
	c.newcomers, c.moved = 0, 0
	return come, moved
}

func (c *captured) AllSubscribers() []edge.Newcomer { return make([]edge.Newcomer, 100) }

func (c *captured) Give(to []edge.Newcomer, pubs []edge.Publication) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given = append(c.given, given{len(to), pubs})
	return len(to) * len(pubs)
}

// come makes n subscribers come.
func (c *captured) come(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newcomers += n
	signal.Send(c.arrived)
}

// given is what some subscribers alone were given.
type given struct {
	subscribers int
	pubs        []edge.Publication
}

// hubFixture is a hub whose edge only records.
type hubFixture struct {
	*Hub
	key    *saltcrypt.MasterKey
	epochs *epochs.Manager
	edge   *captured
	held   int
	jobs   map[string]node.ID
}

func newHubFixture(t *testing.T) *hubFixture {
	t.Helper()
	key, err := saltcrypt.GenerateMasterKey(2048)
	require.NoError(t, err)
	f := &hubFixture{key: key, edge: &captured{arrived: make(chan struct{}, 1)}, jobs: map[string]node.ID{},
		epochs: epochs.New(key, time.Now, nil)}
	f.Hub = New(Config{
		Self: "a", Edge: f.edge, Epochs: f.epochs, Signer: key, Algorithm: func() string { return saltcrypt.PKCS1v15SHA1 },
		Clock: hlc.New(time.Now, 0), From: func(context.Context) (node.ID, bool) { return "b", true },
		JobSeen: func(jid string, origin node.ID,
			_ []byte) {
			f.jobs[jid] = origin
		}, SignedIn: f.epochs.Given, Hold: func() { f.held++ },
		Logger: slog.New(slog.DiscardHandler),
	})
	return f
}

// publish has the local master publish p.
func (f *hubFixture) publish(p Publication) error {
	peek, err := f.PeekLocal(p.Plain)
	if err != nil {
		return err
	}
	return f.Local(p, peek)
}

func (f *hubFixture) begin(t *testing.T, n uint64, window time.Duration) *epochs.Material {
	t.Helper()
	key, err := saltcrypt.NewKey()
	require.NoError(t, err)
	if _, err := f.epochs.Begin(epochs.Epoch{Number: n, Key: key}, window); err != nil {
		t.Fatal(err)
	}
	return f.epochs.Current()
}

// open checks the signature and returns what a minion with that epoch reads.
func (f *hubFixture) open(t *testing.T, body []byte, m *epochs.Material) saltwire.PubPeek {
	t.Helper()
	env, err := saltwire.ParsePub(body)
	require.NoError(t, err)
	require.NoError(t, f.key.Public().Verify(env.SigAlgo, env.Load, env.Sig), "signature")
	plain, err := m.Crypticle.Open(nil, env.Load)
	require.NoError(t, err)
	peek, err := saltwire.PeekPub(plain)
	require.NoError(t, err)
	return peek
}

func plainPub(t *testing.T, m map[string]any) []byte {
	t.Helper()
	b, err := saltwire.AppendAny(nil, m, saltwire.Wire)
	require.NoError(t, err)
	return b
}

func TestSerialsGrowWhoeverPublishes(t *testing.T) {
	f := newHubFixture(t)
	m := f.begin(t, 1, 0)
	ping := func(jid string, serial int) Publication {
		return Publication{Plain: plainPub(t, map[string]any{
			"fun": "test.ping", "arg": []any{}, "tgt": "*", "tgt_type": "glob", "jid": jid, "ret": "", "serial": serial,
		})}
	}
	require.NoError(t, f.publish(ping("20261121000000000001", 900)))
	f.remotePublication("b", ping("20261121000000000002", 1), time.Now()) // another master's count is lower
	require.NoError(t, f.publish(ping("20261121000000000003", 901)))
	var last uint64
	for i, p := range f.edge.pubs {
		peek := f.open(t, p.Body, m)
		if !peek.HasSerial || peek.Serial <= last {
			t.Errorf("publication %d: serial %d after %d", i, peek.Serial, last)
		}
		last = peek.Serial
	}
	if len(f.edge.pubs) != 3 || f.held != 3 {
		t.Fatalf("%d publications, %d held until the epoch was right", len(f.edge.pubs), f.held)
	}
	if f.jobs["20261121000000000001"] != "a" || f.jobs["20261121000000000002"] != "b" {
		t.Errorf("publishers: %v", f.jobs)
	}
}

// TestAllocations: of a publication, from what the master gave to what the edge sends. Others of the process are few
// beside it.
func TestAllocations(t *testing.T) {
	const ceiling = 35
	f := newHubFixture(t)
	f.begin(t, 1, 0)
	plain := plainPub(t, map[string]any{"fun": "test.ping", "arg": []any{}, "tgt": "*", "tgt_type": "glob",
		"jid": "20261121000000000001", "ret": ""})
	one := func() {
		require.NoError(t, f.publish(Publication{Plain: slices.Clone(plain)}))
	}
	one()
	n := testing.AllocsPerRun(20, one)
	t.Logf("%.0f allocations", n)
	if n > ceiling {
		t.Errorf("%.0f allocations, at most %d", n, ceiling)
	}
}

func TestWindowSealsUnderBothEpochs(t *testing.T) {
	f := newHubFixture(t)
	old := f.begin(t, 1, 0)
	cur := f.begin(t, 2, time.Hour)
	require.NoError(t, f.publish(Publication{Plain: nudge}))
	p := f.edge.pubs[0]
	if a, b := f.open(t, p.Body, cur), f.open(t, p.Prev, old); a.Serial != b.Serial {
		t.Errorf("one publication, two serials: %d and %d", a.Serial, b.Serial)
	}
}

func TestListTargetBecomesTopics(t *testing.T) {
	f := newHubFixture(t)
	f.begin(t, 1, 0)
	err := f.publish(Publication{Plain: plainPub(t, map[string]any{
		"fun": "test.ping", "arg": []any{}, "tgt": []any{"web1", "web2"}, "tgt_type": "list", "jid": "1", "ret": "",
	})})
	require.NoError(t, err)
	// hashlib.sha1(id).hexdigest()
	want := []string{"977588a87e10582032716712ccf5d85d18a5fccf", "867e9cd9ead7068ba93c470df4fff5d1a867c4f4"}
	got := f.edge.pubs[0].Topics
	if !slices.Equal(got, want) {
		t.Fatalf("topics %q", got)
	}
}

func TestLocal_NoEpoch(t *testing.T) {
	f := newHubFixture(t)
	if err := f.publish(Publication{Plain: nudge}); err == nil {
		t.Fatal("published without a key")
	}
	if err := f.publish(Publication{Plain: []byte{0xc1}}); err == nil {
		t.Fatal("published what is no map")
	}
}

func TestNudge_NoTargets(t *testing.T) {
	f := newHubFixture(t)
	m := f.begin(t, 1, 0)
	body, err := f.Nudge()
	require.NoError(t, err)
	if p := f.open(t, body, m); len(p.Targets) != 0 || p.TgtType != "list" || p.JID == "" || p.Fun == "" || p.HasSerial {
		t.Fatalf("nudge: %+v", p)
	}
}
