package daemon

import (
	"context"

	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
)

// What a test asks a node as an operator does.

func (n *testNode) KeysOf(ctx context.Context, r adminapi.KeysOfRequest) (adminapi.KeysOf, error) {
	return n.keyVerbs().KeysOf(ctx, r)
}

func (n *testNode) PutKeys(ctx context.Context, r adminapi.PutKeysRequest) (adminapi.DecidedKeys, error) {
	return n.keyVerbs().PutKeys(ctx, r)
}

func (n *testNode) Verify(ctx context.Context) (adminapi.Verification, error) {
	return operator.Verifying{Of: n.ledgers()}.Verify(ctx)
}

func (n *testNode) Status(ctx context.Context) (adminapi.Status, error) {
	return n.node.Status(ctx)
}

func (n *testNode) Members(ctx context.Context) (adminapi.Members, error) {
	return n.node.Members(ctx)
}

func (n *testNode) RingInfo(ctx context.Context, q adminapi.RingQuery) (adminapi.RingInfo, error) {
	return n.node.RingInfo(ctx, q)
}

func (n *testNode) checkEdges(ctx context.Context) health.Result {
	return n.ofService((*service).checkEdges)(ctx)
}

func (n *testNode) checkMaster(ctx context.Context) health.Result {
	return n.ofService((*service).checkMaster)(ctx)
}
