package rotation

import (
	"context"

	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

// Func replaces one kind of secret for an operator. With DryRun it changes nothing and describes what it would do.
type Func func(context.Context, adminapi.RotateRequest, admin.Progress) (adminapi.Outcome, error)

// Verbs implements admin.Rotator.
type Verbs struct {
	// Of returns what this node can rotate now, by RotateRequest.What, and an outcome that names the node and its
	// cluster.
	Of func() (map[string]Func, adminapi.Outcome, error)
}

// Rotate implements admin.Rotator.
func (v Verbs) Rotate(ctx context.Context, r adminapi.RotateRequest, p admin.Progress) (adminapi.Outcome, error) {
	kinds, by, err := v.Of()
	if err != nil {
		return adminapi.Outcome{}, err
	}
	if r.What == "" {
		r.What = adminapi.RotateAES
	}
	rotate := kinds[r.What]
	if rotate == nil {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeInvalid, "saltclusterctl rotate --help",
			"%.40q cannot be rotated", r.What)
	}
	out, err := rotate(ctx, r, p)
	if err != nil {
		return adminapi.Outcome{}, err
	}
	out.Node, out.ClusterID, out.UUID, out.Role = by.Node, by.ClusterID, by.UUID, by.Role
	if r.DryRun {
		out.Message = "nothing was changed; " + out.Message
	}
	return out, nil
}
