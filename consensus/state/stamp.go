package state

import "saltclusterd/gossip/node"

// Stamp fills in what the proposer did not say: who and when, and for a key
// the revision it was looking at.
func Stamp(c Command, a Audit, seen uint64) Command {
	c = mapAudit(c, func(has Audit) Audit { return has.withDefaults(a) })
	if k, ok := c.(KeySet); ok && k.SeenRev == 0 {
		k.SeenRev = seen
		return k
	}
	return c
}

// ProposedBy says who has proposed a command, whatever it says itself.
func ProposedBy(c Command, by node.ID) Command {
	return mapAudit(c, func(has Audit) Audit {
		has.By = by
		return has
	})
}

func mapAudit(c Command, change func(Audit) Audit) Command {
	switch c := c.(type) {
	case Init:
		c.Audit = change(c.Audit)
		return c
	case MemberAdd:
		c.Audit = change(c.Audit)
		return c
	case MemberRemove:
		c.Audit = change(c.Audit)
		return c
	case MemberSet:
		c.Audit = change(c.Audit)
		return c
	case KeySet:
		c.Audit = change(c.Audit)
		return c
	case TombstonesPrune:
		c.Audit = change(c.Audit)
		return c
	case DeniedSet:
		c.Audit = change(c.Audit)
		return c
	case DeniedClear:
		c.Audit = change(c.Audit)
		return c
	case EpochRotate:
		c.Audit = change(c.Audit)
		return c
	case SeedRotate:
		c.Audit = change(c.Audit)
		return c
	case GossipKeyAdd:
		c.Audit = change(c.Audit)
		return c
	case GossipKeyDrop:
		c.Audit = change(c.Audit)
		return c
	case IdentityStage:
		c.Audit = change(c.Audit)
		return c
	case IdentitySwitch:
		c.Audit = change(c.Audit)
		return c
	case IdentityDrop:
		c.Audit = change(c.Audit)
		return c
	case LevelSet:
		c.Audit = change(c.Audit)
		return c
	case TokenAdd:
		c.Audit = change(c.Audit)
		return c
	case TokenDrop:
		c.Audit = change(c.Audit)
		return c
	case JoinAdmit:
		c.Audit = change(c.Audit)
		return c
	case MemberCert:
		c.Audit = change(c.Audit)
		return c
	case JoinSecretSet:
		c.Audit = change(c.Audit)
		return c
	case JoinSecretDrop:
		c.Audit = change(c.Audit)
		return c
	case RootsPropose:
		c.Audit = change(c.Audit)
		return c
	case RootsConfirm:
		c.Audit = change(c.Audit)
		return c
	case RootsDrop:
		c.Audit = change(c.Audit)
		return c
	}
	return c
}

func (a Audit) withDefaults(b Audit) Audit {
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
