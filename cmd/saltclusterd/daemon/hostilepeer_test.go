package daemon

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/cmd/saltclusterd/drain"
	"saltclusterd/cmd/saltclusterd/identity"
	"saltclusterd/cmd/saltclusterd/leadership"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/migration"
	"saltclusterd/cmd/saltclusterd/minionview"
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/cmd/saltclusterd/replication"
	"saltclusterd/cmd/saltclusterd/rootsadmin"
	"saltclusterd/cmd/saltclusterd/rotation"
	"saltclusterd/cmd/saltclusterd/sharewatch"
	"saltclusterd/consensus/state"
	"saltclusterd/fsync/datacache"
	"saltclusterd/fsync/jobs"
	"saltclusterd/fsync/roots"
	"saltclusterd/fsync/tokens"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/mirror"
	"saltclusterd/sidecar/relay"
	"saltclusterd/sidecar/returns"
)

// rpcPaths is all that a member can ask of another one.
var rpcPaths = []string{
	relay.Path, relay.PathSignIn, fanout.Path, datacache.Data.Path(), datacache.Mine.Path(), tokens.Path, mirror.Path,
	jobs.Path, returns.Path, returns.PathLeaving, roots.Path,
	replication.PathCatchUp + replication.PartGrains, replication.PathCatchUp + replication.PartMines,
	replication.PathCatchUp + replication.PartTokens, replication.PathCatchUp + replication.PartJobs,
	replication.PathCatchUp + "../../etc",
	minionview.PathSubscribers, minionview.PathPresence, minionview.PathHandledEvents, minionview.PathProtocols,
	operator.LedgerPath, operator.LedgerPath + "?section=../../etc/passwd", sharewatch.Path, migration.Path,
	migration.Path + "?plan=1&to=/etc", drain.Path,
	membership.PathPropose, operator.StatsPath, leadership.Path, rotation.PathCertificate, identity.PathPins,
	rootsadmin.PathStatus, rootsadmin.PathDiff + "?node=../evil", rootsadmin.PathConflicts,
	"/", "/v1/../../etc/passwd", "/debug/pprof/", "/metrics", "/v1/status",
}

// evil is in every name that a hostile message wants to write.
const evil = "evil-name"

// hostileBodies are a few of what somebody may send who has a certificate and nothing to lose.
func hostileBodies(rng *rand.Rand) [][]byte {
	traversal := "../../../../" + evil
	out := [][]byte{
		nil, {0}, {0xff}, bytes.Repeat([]byte{0xff}, 4096), bytes.Repeat([]byte{0}, 4096),
		[]byte(strings.Repeat("[", 20_000)), []byte(strings.Repeat(`{"a":`, 20_000)),
		bytes.Repeat([]byte{0x81, 0xa1, 'a'}, 20_000),
		[]byte(fmt.Sprintf(`{"v":1,"op":"propose","request":{"v":1,"t":"entry","r":[{"c":[{"v":1,"t":"key.set","d":{"id":%q,"state":"accepted","pub":"P"}}]}]}}`, traversal)),
		[]byte(`{"v":1,"op":"propose","request":{"v":1,"t":"entry","r":[{"c":[{"v":9,"t":"from.the.future","d":{}}]}]}}`),
		[]byte(`{"v":1,"op":"propose","request":{"v":1,"t":"entry","r":[{"c":[{"v":1,"t":"cluster.init","d":{}}]}]}}`),
		[]byte(`{"v":1,"op":"propose","request":{"v":1,"t":"entry","r":[{"c":[{"v":1,"t":"level.set","d":{"level":60000}}]}]}}`),
		[]byte(fmt.Sprintf(`{"step":"copy","to":%q}`, "/tmp/"+evil)), []byte(fmt.Sprintf(`{"to":%q}`, traversal)),
		[]byte(`{"over":-1}`),
		append(binary.BigEndian.AppendUint32(nil, 1<<31), traversal...),
		append(binary.AppendUvarint(nil, 1<<62), traversal...),
	}
	for range 20 { // a kind, numbers, and a name that leaves the directory
		b := make([]byte, rng.IntN(300))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		b = append(b, byte(len(traversal)))
		b = append(b, traversal...)
		out = append(out, append([]byte{byte(rng.IntN(8))}, b...))
	}
	return out
}

// A member's certificate in wrong hands: whatever is sent to whatever path, nothing crashes, nothing is written outside
// of what belongs there, and no minion's key comes into being that the cluster did not decide about.
func TestHostilePeer(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir()}
	nodes := cluster(t, dirs...)
	a, thief := nodes[0], nodes[1]
	acceptKey(t, a, "m1", strings.TrimSpace(mustKey(t)))
	client := thief.tenure.Current().Port.HTTPClient()
	before := a.tenure.Current().Consensus.View().Rev()
	rng := rand.New(rand.NewPCG(1, 2))
	answers := map[int]int{}
	for _, path := range rpcPaths {
		for _, body := range hostileBodies(rng) {
			for _, method := range []string{http.MethodPost, http.MethodGet} {
				if path == leadership.Path && len(body) == 0 { // a member may ask for that
					continue
				}
				answers[send(t, client, method, a.id, path, body)]++
			}
		}
	}
	t.Logf("answers by status: %v", answers)
	if answers[0] > len(answers)*20 {
		t.Errorf("%d requests were not answered at all", answers[0])
	}
	hostileStreams(t, thief.tenure.Current().Port, a.id, rng)
	if _, err := a.Status(t.Context()); err != nil {
		t.Error(err)
	}
	noEvil(t, filepath.Dir(dirs[0]))
	for _, n := range nodes {
		for k := range n.tenure.Current().Consensus.View().Keys {
			if k.ID != "m1" {
				t.Errorf("%s knows a key of %q", n.id, k.ID)
			}
		}
	}
	if k, ok := a.tenure.Current().Consensus.View().Key("m1"); !ok || k.State != state.KeyAccepted {
		t.Errorf("the key of m1: %+v", k)
	}
	t.Logf("revision %d, then %d", before, a.tenure.Current().Consensus.View().Rev())
	eventually(t, "a decision", func() error { // consensus goes on
		_, err := a.Rotate(t.Context(), adminapi.RotateRequest{}, quiet)
		return err
	})
}

// send returns the status, 0 without an answer.
func send(t *testing.T, c *http.Client, method string, to node.ID, path string, body []byte) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "https://"+string(to)+path, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Scd-Run", "1")
	req.Header.Set("Scd-Remote", "not an address")
	if path == fanout.Path { // a stream, which has no end
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		req = req.WithContext(ctx)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode
}

// hostileStreams speaks nonsense where raft and gossip listen.
func hostileStreams(t *testing.T, from *peer.Port, to node.ID, rng *rand.Rand) {
	t.Helper()
	for _, proto := range []string{peer.ProtoRaft, peer.ProtoGossip} {
		for n := range 40 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			c, err := from.Dial(ctx, to, proto)
			cancel()
			if err != nil {
				t.Errorf("%s, connection %d: %v", proto, n, err)
				continue
			}
			b := make([]byte, 1+rng.IntN(4096))
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			switch n % 4 {
			case 0: // a known kind of message, with lengths out of bounds
				b = append([]byte{byte(n / 4 % 6), 0xdd, 0xff, 0xff, 0xff, 0xff}, b...)
			case 1:
				b = append([]byte{byte(n / 4 % 6), 0xc6, 0x7f, 0xff, 0xff, 0xff}, b...)
			case 2:
				b[0] = byte(n / 4 % 6)
			}
			_ = c.SetDeadline(time.Now().Add(60 * time.Millisecond))
			_, _ = c.Write(b)
			_, _ = io.Copy(io.Discard, io.LimitReader(c, 64<<10))
			_ = peer.Cut(c)
		}
	}
}

// noEvil looks for what a hostile message has written.
func noEvil(t *testing.T, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && strings.Contains(e.Name(), evil) {
				t.Errorf("%s was written", path)
			}
			return nil
		})
		check.NoError(t, err)
	}
}
