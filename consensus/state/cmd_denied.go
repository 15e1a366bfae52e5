package state

import "errors"

// DeniedSet ("denied.set") records a key that was offered for an id which has
// another one. The last one offered is kept, as stock Salt does.
type DeniedSet struct {
	ID  string `json:"id"`
	Pub string `json:"pub"`
	Audit
}

// Type implements Command.
func (DeniedSet) Type() string { return "denied.set" }

// Validate implements Command.
func (c DeniedSet) Validate() error {
	return errors.Join(ValidMinionID(c.ID), validPub(c.Pub), c.Audit.validate())
}

func (c DeniedSet) applyTo(d *data) Result {
	old := d.denied.get(c.ID)
	if old != nil && old.Pub == c.Pub {
		return Result{Rev: old.Rev}
	}
	if old == nil && d.denied.len() >= MaxDenied {
		return refuse(LimitReached, 0, "%d denied keys, the maximum", d.denied.len())
	}
	k := &DeniedKey{ID: c.ID, Pub: c.Pub, Rev: d.nextRevision(), Audit: c.Audit}
	d.denied.put(c.ID, k)
	d.deniedRev = k.Rev
	return Result{Rev: k.Rev}
}

// DeniedClear ("denied.clear") forgets a denied key. With Pub set it does so
// only if that is the key on record.
type DeniedClear struct {
	ID  string `json:"id"`
	Pub string `json:"pub,omitempty"`
	Audit
}

// Type implements Command.
func (DeniedClear) Type() string { return "denied.clear" }

// Validate implements Command.
func (c DeniedClear) Validate() error {
	errs := []error{ValidMinionID(c.ID), c.Audit.validate()}
	if c.Pub != "" {
		errs = append(errs, validPub(c.Pub))
	}
	return errors.Join(errs...)
}

func (c DeniedClear) applyTo(d *data) Result {
	old := d.denied.get(c.ID)
	switch {
	case old == nil:
		return refuse(NotFound, 0, "there is no denied key %q", c.ID)
	case c.Pub != "" && c.Pub != old.Pub:
		return refuse(Conflict, old.Rev, "another key has been denied for %q in the meantime", c.ID)
	}
	d.denied.del(c.ID)
	d.deniedRev = d.nextRevision()
	return Result{Rev: d.deniedRev}
}
