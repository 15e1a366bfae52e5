package daemon

import (
	"context"
	"os"

	"saltclusterd/sidecar/adminapi"
)

// A process that serves no minions (a witness, a node that belongs to no cluster yet, is catching up or is drained) has
// nothing to hand over: it ends in good order, and the other program is started in its place, under its pid.

// replace is Upgrade for such a process. As there, a configuration with which the other one would not come up changes nothing.
func (d *Daemon) replace(ctx context.Context, r adminapi.UpgradeRequest, u *upgrade) (adminapi.Outcome, error) {
	if err := u.rehearse(ctx); err != nil {
		d.notReloaded(r, err)
		d.log.Error("upgrade failed, this process goes on", "path", u.binary, "err", err)
		d.process.Notify("STATUS=upgrade failed, the old process goes on: " + oneLine(err.Error()))
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeRefused, "nothing has changed, and no other process was started",
			"the running saltclusterd goes on: %v", err)
	}
	restart := &RestartError{u.binary, "this node serves no minions: there is nothing to hand over"}
	select {
	case d.restarts <- restart:
	default: // one is on its way
	}
	if u.m != nil {
		d.restartMember(u.m)
	}
	return adminapi.Outcome{
		Node: string(d.id), PID: os.Getpid(),
		Message: "this node serves no minions, so there was nothing to hand over: it was restarted as " + u.binary,
	}, nil
}

// restartMember ends a membership when a restart was asked for; else awaitMembership takes notice.
func (d *Daemon) restartMember(m *member) {
	select {
	case r := <-d.restarts:
		m.fail(r)
	default:
	}
}
