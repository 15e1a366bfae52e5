package consensus

import (
	"context"
	"testing"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
)

// FuzzForwardReply is what a node that leads, or says so, can answer to a proposal.
func FuzzForwardReply(f *testing.F) {
	f.Add([]byte(`{"v":1,"index":7,"results":[{"rev":3}]}`))
	f.Add([]byte(`{"v":1,"code":"not_leader","leader":"m2"}`))
	f.Add([]byte(`{"v":1,"code":"invalid","message":"no"}`))
	f.Add([]byte(`{"v":1,"results":[null,{}]}`))
	f.Add([]byte(`{"v":2}`))
	var answer []byte
	n, err := New(Config{
		ID: "m1", Dir: "unused", Port: fabricPort{}, Stats: newFabric().stats("m1"),
		Forward: func(context.Context, node.ID, []byte) ([]byte, error) { return answer, nil },
	})
	require.NoError(f, err)
	req := state.Request{ID: "m1/1", Commands: []state.Command{state.MemberRemove{ID: "m3"}}}
	f.Fuzz(func(t *testing.T, b []byte) {
		answer = b
		out, fail := n.proposeAtLeader(t.Context(), "m2", req)
		switch {
		case fail == nil && len(out.results) != len(req.Commands):
			t.Fatalf("%d results for %d commands", len(out.results), len(req.Commands))
		case fail != nil && fail.Error() == "":
			t.Fatal("an error without words")
		}
	})
}
