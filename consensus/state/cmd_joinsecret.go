package state

import "errors"

// JoinSecretSet ("secret.set") puts a new cluster secret in force. Expect is
// the number of the one it replaces, zero for what members have configured.
// With Keep that one is also accepted until secret.drop.
type JoinSecretSet struct {
	Expect uint64
	Key    Secret
	Keep   bool
	Audit
}

// Type implements Command.
func (JoinSecretSet) Type() string { return "secret.set" }

// Validate implements Command.
func (c JoinSecretSet) Validate() error {
	return errors.Join(validJoinSecret(c.Key), c.Audit.validate())
}

func (c JoinSecretSet) applyTo(d *data) Result {
	cur := d.secrets.Current
	switch {
	case cur.N != c.Expect:
		return refuse(Conflict, cur.Rev, "cluster secret %d is in force, not %d", cur.N, c.Expect)
	case cur.Key.Equal(c.Key):
		return refuse(Invalid, cur.Rev, "the new cluster secret is the old one")
	}
	next := JoinSecrets{Current: JoinSecret{N: cur.N + 1, Key: c.Key, Rev: d.nextRevision(), Audit: c.Audit}}
	if c.Keep {
		next.Former, next.Overlap = cur, true
	}
	d.secrets = next
	return Result{Rev: next.Current.Rev}
}

// JoinSecretDrop ("secret.drop") ends the time in which the secret before
// number N is also accepted.
type JoinSecretDrop struct {
	N uint64 `json:"n"`
	Audit
}

// Type implements Command.
func (JoinSecretDrop) Type() string { return "secret.drop" }

// Validate implements Command.
func (c JoinSecretDrop) Validate() error { return c.Audit.validate() }

func (c JoinSecretDrop) applyTo(d *data) Result {
	cur := d.secrets.Current
	switch {
	case cur.N != c.N:
		return refuse(Conflict, cur.Rev, "cluster secret %d is in force, not %d", cur.N, c.N)
	case !d.secrets.Overlap:
		return Result{Rev: cur.Rev}
	}
	d.secrets = JoinSecrets{Current: cur}
	return Result{Rev: d.nextRevision()}
}

type wireJoinSecretSet struct {
	Expect uint64 `json:"expect"`
	Key    []byte `json:"key"`
	Keep   bool   `json:"keep,omitempty"`
	Audit
}

func (c JoinSecretSet) toWire() any {
	return wireJoinSecretSet{c.Expect, c.Key.Bytes(), c.Keep, c.Audit}
}

func (w wireJoinSecretSet) toCommand() Command {
	return JoinSecretSet{w.Expect, NewSecret(w.Key), w.Keep, w.Audit}
}
