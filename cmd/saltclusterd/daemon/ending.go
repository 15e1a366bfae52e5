package daemon

import (
	"context"
	"errors"

	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/removal"
)

// ending is why a membership ends while the daemon keeps running. after is called when all parts are closed.
type ending struct {
	reason string
	after  func() error
}

func (e *ending) Error() string { return e.reason }

// afterEnding carries out what the end of a membership asks for; again says whether the daemon keeps running.
func (d *Daemon) afterEnding(err error) (again bool, _ error) {
	var end *ending
	if !errors.As(err, &end) {
		return false, err
	}
	if err := end.after(); err != nil {
		return false, err
	}
	return true, nil
}

// serveMember opens a membership, serves until ctx ends, a part fails or it ends by an ending, and closes it.
func (d *Daemon) serveMember(ctx context.Context, record *membership.Record) (err error) {
	d.reg.Renew()
	m, err := d.newMember(record)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, m.Close())
		d.setMember(nil)
	}()
	if err := m.Open(ctx); err != nil {
		return err
	}
	d.checks.SetDraining(false) // a membership before this one set it
	d.setMember(m)
	d.checks.Kick() // they have looked at a node without a cluster
	d.upgrader.EndForRestart(m.fail)
	return d.upgrader.Finish(ctx, m.Serve(ctx, m.role.Open))
}

// lostLog ends the membership of a node without its consensus log.
func (d *Daemon) lostLog(what string) error {
	reason := removal.DescribeLostLog(what, d.id)
	d.log.Error("this node is not a member any more", "node", d.id, "reason", reason)
	return d.endForGood(reason)
}

// endForGood ends a membership and makes this node one that was removed.
func (d *Daemon) endForGood(reason string) error {
	return &ending{reason, func() error {
		r, err := membership.ReadRecord(d.cfg.Paths.StateDir)
		if err != nil || r == nil {
			return err
		}
		if err := r.End(d.cfg.Paths.StateDir, reason); err != nil {
			return err
		}
		d.awaitJoin()
		return nil
	}}
}
