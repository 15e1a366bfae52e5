package state

import (
	"errors"
	"fmt"
	"maps"

	"saltclusterd/gossip/node"
)

// MemberAdd ("member.add") puts a node on the roster. Address and fingerprint
// must be unique. The same node with the same fingerprint again is not an error
// (its address is taken over); with another fingerprint it is a conflict: the
// old entry has to be removed first.
type MemberAdd struct {
	ID          node.ID `json:"id"`
	Addr        string  `json:"addr"`
	Fingerprint string  `json:"fingerprint"`
	Weight      int     `json:"weight"`
	Witness     bool    `json:"witness,omitempty"`
	NonVoter    bool    `json:"non_voter,omitempty"`
	Audit
}

// Type implements Command.
func (MemberAdd) Type() string { return "member.add" }

// Validate implements Command.
func (c MemberAdd) Validate() error {
	return errors.Join(
		validMember(Member{ID: c.ID, Addr: c.Addr, Fingerprint: c.Fingerprint, Weight: c.Weight}),
		c.Audit.validate())
}

func (c MemberAdd) applyTo(d *data) Result {
	if d.secrets.Current.N > 0 { // it does not say which secret was proven
		return refuse(Conflict, d.secrets.Current.Rev, "the cluster secret was changed")
	}
	return c.addMember(d)
}

// addMember is apply when the right to join was checked.
func (c MemberAdd) addMember(d *data) Result {
	old, known := d.members[c.ID]
	if known && old.Fingerprint != c.Fingerprint {
		return refuse(Conflict, old.Rev, "%s is on the roster with another certificate: remove it first", c.ID)
	}
	if err := d.checkUnique(c.ID, c.Addr, c.Fingerprint); err != nil {
		return refuse(Conflict, 0, "%v", err)
	}
	if known {
		if old.Addr == c.Addr {
			return Result{Rev: old.Rev}
		}
		old.Addr = c.Addr
		return d.putMember(old, c.Audit)
	}
	if len(d.members) >= MaxMembers {
		return refuse(LimitReached, 0, "%d members, the maximum", len(d.members))
	}
	return d.putMember(Member{
		ID: c.ID, Addr: c.Addr, Fingerprint: c.Fingerprint, Weight: c.Weight,
		Witness: c.Witness, NonVoter: c.NonVoter, JoinedRev: d.rev + 1,
	}, c.Audit)
}

// MemberRemove ("member.remove") takes a node off the roster: its certificate
// is worth nothing from then on. The last voting member cannot be removed.
type MemberRemove struct {
	ID node.ID `json:"id"`
	Audit
}

// Type implements Command.
func (MemberRemove) Type() string { return "member.remove" }

// Validate implements Command.
func (c MemberRemove) Validate() error { return errors.Join(validNode(c.ID), c.Audit.validate()) }

func (c MemberRemove) applyTo(d *data) Result {
	if _, ok := d.members[c.ID]; !ok {
		return refuse(UnknownMember, 0, "%s is not on the roster", c.ID)
	}
	if d.lastVoter(c.ID) {
		return refuse(Conflict, 0, "%s is the last voting member", c.ID)
	}
	d.members = maps.Clone(d.members)
	delete(d.members, c.ID)
	d.removedRev = d.nextRevision()
	return Result{Rev: d.removedRev}
}

// MemberSet ("member.set") changes what is given and leaves the rest.
type MemberSet struct {
	ID       node.ID `json:"id"`
	Addr     *string `json:"addr,omitempty"`
	Weight   *int    `json:"weight,omitempty"`
	Draining *bool   `json:"draining,omitempty"`
	NonVoter *bool   `json:"non_voter,omitempty"`
	Audit
}

// Type implements Command.
func (MemberSet) Type() string { return "member.set" }

// Validate implements Command.
func (c MemberSet) Validate() error {
	errs := []error{validNode(c.ID), c.Audit.validate()}
	if c.Addr != nil {
		errs = append(errs, validAddr(*c.Addr))
	}
	if c.Weight != nil && (*c.Weight < 1 || *c.Weight > MaxWeight) {
		errs = append(errs, fmt.Errorf("weight %d is not in 1..%d", *c.Weight, MaxWeight))
	}
	return errors.Join(errs...)
}

func (c MemberSet) applyTo(d *data) Result {
	m, ok := d.members[c.ID]
	if !ok {
		return refuse(UnknownMember, 0, "%s is not on the roster", c.ID)
	}
	old := m
	if c.Addr != nil {
		if err := d.checkUnique(c.ID, *c.Addr, m.Fingerprint); err != nil {
			return refuse(Conflict, m.Rev, "%v", err)
		}
		m.Addr = *c.Addr
	}
	if c.Weight != nil {
		m.Weight = *c.Weight
	}
	if c.Draining != nil {
		m.Draining = *c.Draining
	}
	if c.NonVoter != nil {
		if *c.NonVoter && d.lastVoter(c.ID) {
			return refuse(Conflict, m.Rev, "%s is the last voting member", c.ID)
		}
		m.NonVoter = *c.NonVoter
	}
	if m == old {
		return Result{Rev: m.Rev}
	}
	return d.putMember(m, c.Audit)
}

func (d *data) putMember(m Member, a Audit) Result {
	m.Rev, m.Audit = d.nextRevision(), a
	d.members = maps.Clone(d.members)
	d.members[m.ID] = m
	return Result{Rev: m.Rev}
}

// checkUnique refuses an address or certificate that another member has. The order
// of the map does not show in the outcome: the smallest id is named.
func (d *data) checkUnique(id node.ID, addr, fp string) error {
	for _, m := range sortedMembers(d.members) {
		switch {
		case m.ID == id:
		case m.Addr == addr:
			return fmt.Errorf("%s already has the address %s", m.ID, addr)
		case m.Fingerprint == fp:
			return fmt.Errorf("%s already has this certificate", m.ID)
		}
	}
	return nil
}

func (d *data) lastVoter(id node.ID) bool {
	if m, ok := d.members[id]; !ok || m.NonVoter {
		return false
	}
	for _, m := range d.members {
		if m.ID != id && !m.NonVoter {
			return false
		}
	}
	return true
}
