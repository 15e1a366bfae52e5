package daemon

import (
	"context"

	"saltclusterd/sidecar/adminapi"
)

// What a test asks a node as an operator does.

func (n *testNode) KeysOf(ctx context.Context, r adminapi.KeysOfRequest) (adminapi.KeysOf, error) {
	return n.keyVerbs().KeysOf(ctx, r)
}

func (n *testNode) PutKeys(ctx context.Context, r adminapi.PutKeysRequest) (adminapi.DecidedKeys, error) {
	return n.keyVerbs().PutKeys(ctx, r)
}
