package daemon

import (
	"context"
	"fmt"
	"strings"

	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
)

// HeldKeys implements admin.KeyHolder.
func (d *Daemon) HeldKeys(context.Context) (adminapi.HeldKeys, error) {
	m := d.current()
	if m == nil {
		return adminapi.HeldKeys{}, d.errNoMember()
	}
	out := adminapi.HeldKeys{Node: string(d.id), IDs: []string{}}
	if m.svc != nil {
		out.IDs = append(out.IDs, m.svc.dir.Held()...)
	}
	return out, nil
}

// ForgetHeldKeys implements admin.KeyHolder.
func (d *Daemon) ForgetHeldKeys(ctx context.Context) (adminapi.HeldKeys, error) {
	out, err := d.HeldKeys(ctx)
	if m := d.current(); err == nil && m != nil && m.svc != nil {
		m.svc.dir.Forget()
		d.checks.Kick("keys")
	}
	return out, err
}

// maxNamedKeys bounds how many held keys a check names.
const maxNamedKeys = 5

// checkHeldKeys warns of keys that are held until an operator decides about them.
func (s *service) checkHeldKeys(context.Context) health.Result {
	ids := s.dir.Held()
	if len(ids) == 0 {
		return fine
	}
	named := strings.Join(ids[:min(len(ids), maxNamedKeys)], " ")
	if len(ids) > maxNamedKeys {
		named += " …"
	}
	return health.Result{
		Level: health.Warn,
		Reason: fmt.Sprintf("%d accepted keys were deleted or rejected on this host, too many at once, and were restored: %s; "+
			"salt-key does that, and so do thorium, reactors and scripts", len(ids), named),
		Hint: fmt.Sprintf("on %s: saltclusterctl keys held --delete to delete them, saltclusterctl keys held --keep to keep them", s.m.d.id),
	}
}
