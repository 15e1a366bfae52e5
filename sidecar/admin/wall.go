package admin

import (
	"context"

	"saltclusterd/sidecar/adminapi"
)

// Waller is a Backend that has rules for what minions may ask.
type Waller interface {
	Wall(ctx context.Context) (adminapi.Wall, error)
	Protocols(ctx context.Context) (adminapi.Protocols, error)
}

// Presencer is a Backend that knows who is alive.
type Presencer interface {
	Presence(ctx context.Context) (adminapi.Presence, error)
}
