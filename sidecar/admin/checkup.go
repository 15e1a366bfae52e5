package admin

import (
	"context"

	"saltclusterd/sidecar/adminapi"
)

// Examiner is a Backend that tells what only the daemon can find out about its node and the way to the others.
type Examiner interface {
	Checkup(ctx context.Context) (adminapi.Checkup, error)
}
