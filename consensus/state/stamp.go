package state

// Stamp fills in what the proposer did not say: who and when, and for a key
// the revision it was looking at.
func Stamp(c Command, a Audit, seen uint64) Command {
	switch c := c.(type) {
	case Init:
		c.Audit = c.Audit.or(a)
		return c
	case MemberAdd:
		c.Audit = c.Audit.or(a)
		return c
	case MemberRemove:
		c.Audit = c.Audit.or(a)
		return c
	case MemberSet:
		c.Audit = c.Audit.or(a)
		return c
	case KeySet:
		c.Audit = c.Audit.or(a)
		if c.SeenRev == 0 {
			c.SeenRev = seen
		}
		return c
	case TombstonesPrune:
		c.Audit = c.Audit.or(a)
		return c
	case DeniedSet:
		c.Audit = c.Audit.or(a)
		return c
	case DeniedClear:
		c.Audit = c.Audit.or(a)
		return c
	case EpochRotate:
		c.Audit = c.Audit.or(a)
		return c
	case GossipKeyAdd:
		c.Audit = c.Audit.or(a)
		return c
	case GossipKeyDrop:
		c.Audit = c.Audit.or(a)
		return c
	case IdentityStage:
		c.Audit = c.Audit.or(a)
		return c
	case IdentitySwitch:
		c.Audit = c.Audit.or(a)
		return c
	case IdentityDrop:
		c.Audit = c.Audit.or(a)
		return c
	case LevelSet:
		c.Audit = c.Audit.or(a)
		return c
	case TokenAdd:
		c.Audit = c.Audit.or(a)
		return c
	case TokenDrop:
		c.Audit = c.Audit.or(a)
		return c
	case JoinAdmit:
		c.Audit = c.Audit.or(a)
		return c
	case MemberCert:
		c.Audit = c.Audit.or(a)
		return c
	case JoinSecretSet:
		c.Audit = c.Audit.or(a)
		return c
	case JoinSecretDrop:
		c.Audit = c.Audit.or(a)
		return c
	case RootsPropose:
		c.Audit = c.Audit.or(a)
		return c
	case RootsConfirm:
		c.Audit = c.Audit.or(a)
		return c
	case RootsDrop:
		c.Audit = c.Audit.or(a)
		return c
	}
	return c
}

func (a Audit) or(b Audit) Audit {
	if a.By == "" {
		a.By = b.By
	}
	if a.At == 0 {
		a.At = b.At
	}
	if a.Cause == "" {
		a.Cause = b.Cause
	}
	return a
}
