package daemon

import (
	"context"
	"errors"

	"saltclusterd/cmd/saltclusterd/membership"
)

// ending is why a membership ends while the daemon keeps running. after is called when all parts are closed.
type ending struct {
	reason string
	after  func() error
}

func (e *ending) Error() string { return e.reason }

// live runs a membership until ctx ends, a part fails, or it ends by an ending, which is carried out.
func (d *Daemon) live(ctx context.Context, seed *membership.Record) (again bool, err error) {
	return d.afterEnding(d.serveMember(ctx, seed))
}

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

// serveMember opens a membership, serves, and closes it.
func (d *Daemon) serveMember(ctx context.Context, seed *membership.Record) (err error) {
	d.reg.renew()
	m, err := d.newMember(seed)
	if err != nil {
		return err
	}
	defer func() {
		if closing := m.Close(); closing != nil {
			err = errors.Join(err, closing)
		}
		d.setMember(nil)
	}()
	if err := m.Open(ctx); err != nil {
		return err
	}
	d.checks.SetDraining(false) // a membership before this one set it
	d.setMember(m)
	d.checks.Kick() // they have looked at a node without a cluster
	d.upgrader.EndForRestart(m.fail)
	return d.upgrader.Finish(ctx, m.Serve(ctx))
}

func (d *Daemon) setMember(m *member) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.member = m
}
