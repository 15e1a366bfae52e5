package state

import (
	"errors"
	"fmt"
)

// IdentityStage ("identity.stage") puts another identity beside the one in
// force, whose fingerprint is Expect. The private half of each is sealed for
// those who have the other one; state does not open them.
type IdentityStage struct {
	Expect string `json:"expect"`
	FP     string `json:"fp"`
	Public string `json:"public"` // text of the public key
	Sealed []byte `json:"sealed"`
	Former []byte `json:"former"`
	Audit
}

// Type implements Command.
func (IdentityStage) Type() string { return "identity.stage" }

// Validate implements Command.
func (c IdentityStage) Validate() error {
	return errors.Join(validIdentityFP(c.FP), validPub(c.Public), validSealed(c.Sealed), validSealed(c.Former),
		c.Audit.validate())
}

func (c IdentityStage) applyTo(d *data) Result {
	switch {
	case !d.isInitialized() || d.ident.IdentityFP != c.Expect:
		return refuse(Conflict, d.rev, "another identity is in force")
	case d.change.Stage != NoIdentity:
		return refuse(Conflict, d.change.Rev, "an identity is %s already", d.change.Stage)
	case c.FP == c.Expect:
		return refuse(Invalid, d.rev, "the new identity is the old one")
	}
	d.change = IdentityChange{
		Stage: IdentityStaged, FP: c.FP, Former: c.Expect, Public: c.Public, Sealed: c.Sealed, SealedFormer: c.Former,
		Rev: d.nextRevision(), Audit: c.Audit,
	}
	return Result{Rev: d.change.Rev}
}

// IdentitySwitch ("identity.switch") puts the staged identity in force.
type IdentitySwitch struct {
	FP string `json:"fp"`
	Audit
}

// Type implements Command.
func (IdentitySwitch) Type() string { return "identity.switch" }

// Validate implements Command.
func (c IdentitySwitch) Validate() error {
	return errors.Join(validIdentityFP(c.FP), c.Audit.validate())
}

func (c IdentitySwitch) applyTo(d *data) Result {
	if d.change.Stage == NoIdentity || d.change.FP != c.FP {
		return refuse(Conflict, d.rev, "no such identity is staged")
	}
	if d.change.Stage == IdentitySwitched {
		return Result{Rev: d.change.Rev}
	}
	d.change.Stage, d.change.Rev, d.change.Audit = IdentitySwitched, d.nextRevision(), c.Audit
	d.ident.IdentityFP = c.FP
	return Result{Rev: d.change.Rev}
}

// IdentityDrop ("identity.drop") forgets the identity that is not in force: the
// staged one, or after the switch the former one. Stage is what the proposer
// has seen, so that giving up never ends what was switched meanwhile.
type IdentityDrop struct {
	FP    string       `json:"fp"`
	Stage IdentityStep `json:"stage"`
	Audit
}

// Type implements Command.
func (IdentityDrop) Type() string { return "identity.drop" }

// Validate implements Command.
func (c IdentityDrop) Validate() error {
	return errors.Join(validIdentityFP(c.FP), validIdentityStep(c.Stage), c.Audit.validate())
}

func (c IdentityDrop) applyTo(d *data) Result {
	if d.change.Stage != c.Stage || d.change.FP != c.FP {
		return refuse(Conflict, d.rev, "no such identity is %s", c.Stage)
	}
	d.change = IdentityChange{}
	return Result{Rev: d.nextRevision()}
}

// IdentityStep is how far a change of the identity is.
type IdentityStep string

// The steps of a change of the identity.
const (
	NoIdentity       IdentityStep = ""         // none is under way
	IdentityStaged   IdentityStep = "staged"   // a second one is known, the former is in force
	IdentitySwitched IdentityStep = "switched" // the new one is in force, the former is still known
)

// IdentityChange is a change of the cluster's identity that is under way.
type IdentityChange struct {
	Stage        IdentityStep `json:"stage"`
	FP           string       `json:"fp"`            // of the new one
	Former       string       `json:"former"`        // of the other one
	Public       string       `json:"public"`        // the new one's
	Sealed       []byte       `json:"sealed"`        // its private half, for holders of the former key
	SealedFormer []byte       `json:"sealed_former"` // the former private half, for holders of the new key
	Rev          uint64       `json:"rev"`
	Audit
}

// IdentityChange is the change of the identity that is under way.
func (v View) IdentityChange() IdentityChange { return v.get().change }

func validIdentityFP(fp string) error {
	if fp == "" {
		return errors.New("empty identity fingerprint")
	}
	return validText("identity fingerprint", fp, MaxText)
}

func validIdentityStep(s IdentityStep) error {
	if s != IdentityStaged && s != IdentitySwitched {
		return errors.New("no step of a change of the identity")
	}
	return nil
}

func validSealed(b []byte) error {
	if len(b) == 0 || len(b) > MaxSealedIdentity {
		return fmt.Errorf("sealed identity is not 1 to %d bytes", MaxSealedIdentity)
	}
	return nil
}

// identityChange is the snapshot record, there only when a change is under way.
func (r *snapshotReader) identityChange(c IdentityChange) error {
	inForce := map[IdentityStep]string{IdentityStaged: c.Former, IdentitySwitched: c.FP}[c.Stage]
	if r.d.change.Stage != NoIdentity || c.FP == c.Former || r.d.ident.IdentityFP != inForce {
		return errors.New("duplicate change of the identity, or one of another identity")
	}
	r.d.change = c
	return errors.Join(validIdentityStep(c.Stage), validIdentityFP(c.FP), validIdentityFP(c.Former), validPub(c.Public),
		validSealed(c.Sealed),
		validSealed(c.SealedFormer), c.Audit.validate(), r.checkRevision(c.Rev, false))
}
