package admin

import (
	"context"
	"io"

	"saltclusterd/sidecar/adminapi"
)

// Backend answers the verbs. An *adminapi.Error anywhere in a returned error's
// chain decides code and hint; every other error becomes "internal" with its
// text.
//
// Status, Members, RingInfo and Config must answer from what this node knows,
// also while peers are down or there is no leader; their contexts end after
// Config.RequestTimeout.
//
// The context of Bootstrap and Join ends when the client goes away, when its
// timeout is over or when the server closes. Before the point of no return the
// backend then stops and leaves everything as it was; after it, only the
// waiting stops. A timeout should be reported as adminapi.CodeTimeout with what
// was waited for.
type Backend interface {
	Version(ctx context.Context) (adminapi.Version, error)
	Status(ctx context.Context) (adminapi.Status, error)
	Members(ctx context.Context) (adminapi.Members, error)
	RingInfo(ctx context.Context, q adminapi.RingQuery) (adminapi.RingInfo, error)
	Config(ctx context.Context) (adminapi.Config, error)
	Minions(ctx context.Context) (adminapi.Minions, error)
	Bootstrap(ctx context.Context, r adminapi.BootstrapRequest, p Progress) (adminapi.Outcome, error)
	Join(ctx context.Context, r adminapi.JoinRequest, p Progress) (adminapi.Outcome, error)
	Drain(ctx context.Context, r adminapi.DrainRequest, p Progress) (adminapi.Outcome, error)
	Undrain(ctx context.Context, r adminapi.UndrainRequest, p Progress) (adminapi.Outcome, error)
	Remove(ctx context.Context, r adminapi.RemoveRequest, p Progress) (adminapi.Outcome, error)
	Transfer(ctx context.Context, r adminapi.TransferRequest, p Progress) (adminapi.Outcome, error)
	RecoverPlan(ctx context.Context) (adminapi.RecoverPlan, error)
	Recover(ctx context.Context, r adminapi.RecoverRequest, p Progress) (adminapi.Outcome, error)
	// SaveSnapshot writes nothing when it fails before the first byte.
	SaveSnapshot(ctx context.Context, w io.Writer) error
	RestoreSnapshot(ctx context.Context, r adminapi.RestoreRequest, file io.Reader, p Progress) (adminapi.Outcome, error)
	Rotate(ctx context.Context, r adminapi.RotateRequest, p Progress) (adminapi.Outcome, error)
}

// Progress tells the client what an operation is doing: a short stable step
// name and a sentence, and how much of the step is done, in percent, when that
// is known. It may be called from any goroutine until the operation returns
// and does not block for long.
type Progress func(step, message string, percent ...int)
