package consensus

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
)

// BenchmarkPropose is one node, many callers: the group commit.
func BenchmarkPropose(b *testing.B) {
	f := newFabric()
	n, err := New(Config{ID: "m1", Dir: b.TempDir(), Port: fabricPort{f, "m1"}, Timing: fastTiming(),
		Stats:   func(context.Context, node.ID) (PeerStats, error) { return PeerStats{}, errCut },
		Forward: func(context.Context, node.ID, []byte) ([]byte, error) { return nil, errCut }})
	require.NoError(b, err)
	require.NoError(b, n.Open(b.Context()))
	defer func() { _ = n.Close() }()
	require.NoError(b, n.Bootstrap(b.Context(), initFor("m1")))
	var i atomic.Int64
	b.SetParallelism(64)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			k := state.KeySet{ID: fmt.Sprint("minion", i.Add(1)), State: state.KeyAccepted, Pub: "PUB"}
			if r, err := n.Propose(b.Context(), k); err != nil || r[0].Code != state.OK {
				b.Error(r, err)
				return
			}
		}
	})
}
