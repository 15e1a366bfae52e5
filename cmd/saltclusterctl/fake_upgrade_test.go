package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

// upgraded is a fake that another process takes the place of: its process id counts up.
type upgraded struct {
	*fake
	pid atomic.Int64
}

func (u *upgraded) Version(ctx context.Context) (adminapi.Version, error) {
	v, err := u.fake.Version(ctx)
	v.PID = int(u.pid.Load())
	return v, err
}

// Upgrade hands over to the process that comes after this one.
func (u *upgraded) Upgrade(_ context.Context, r adminapi.UpgradeRequest, p admin.Progress) (adminapi.Outcome, error) {
	p("start", fmt.Sprintf("starting %q", r.Binary))
	next := int(u.pid.Add(1))
	return adminapi.Outcome{Node: "m1", PID: next, Message: fmt.Sprintf("process %d serves", next)}, nil
}
