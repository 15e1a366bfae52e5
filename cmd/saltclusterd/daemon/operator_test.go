package daemon

import (
	"context"

	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/sidecar/adminapi"
)

// What a test asks a node as an operator does.

func (n *testNode) KeysOf(ctx context.Context, r adminapi.KeysOfRequest) (adminapi.KeysOf, error) {
	return n.keyVerbs().KeysOf(ctx, r)
}

func (n *testNode) PutKeys(ctx context.Context, r adminapi.PutKeysRequest) (adminapi.DecidedKeys, error) {
	return n.keyVerbs().PutKeys(ctx, r)
}

func (n *testNode) Verify(ctx context.Context) (adminapi.Verification, error) {
	return operator.Verifying{Of: n.ledgers}.Verify(ctx)
}
