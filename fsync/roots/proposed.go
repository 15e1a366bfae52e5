package roots

import (
	"errors"
	"fmt"
)

// proposed is a proposal that was made, or was about to be, and what the base is when it has become a revision. It is on the disk, with
// all that names the tree, before anybody hears of it: a node that is killed in that moment would otherwise leave a revision behind
// that nobody can read, and take what was edited here since for a conflict with its own revision.
type proposed struct {
	Parent uint64
	Base   base // Number is not known yet
	Held   bool // to be decided by an operator: then what is live has been edited on, or was put back
}

// willPropose makes a proposal outlast a crash.
func (s *Store) willPropose(p Proposal, e *edits) error {
	if err := errors.Join(s.putLive(), s.db.putObjects(e.objects)); err != nil {
		return err
	}
	next := s.base.clone()
	next.Number, next.Root, next.Merged = 0, p.Root, false
	for _, st := range e.slots {
		next.Slots[st.Name], next.Idents[st.Name] = st.dir, st.ident
	}
	s.proposed = &proposed{p.Parent, next, p.Held && !p.Confirmed}
	// With the base, which is never older than the parent then.
	if err := s.db.put(pair{bucketMeta, keyBase, s.base}, pair{bucketMeta, keyProposal, *s.proposed}); err != nil {
		return fmt.Errorf("write down a proposal: %w", err)
	}
	s.baseUnsaved = false
	return nil
}

// adopt makes a proposal the base whose end nobody here has seen, because of a crash or an answer that was lost, when it has become a
// revision: what is on this disk comes from it.
func (s *Store) adopt() {
	p := s.proposed
	if p == nil || p.Held || p.Parent != s.base.Number {
		return
	}
	for _, r := range s.cfg.Log.Revisions() {
		if r.Parent == p.Parent && r.Author == s.cfg.Self && r.Root == p.Base.Root && r.Kind != KindRollback && r.State == StateApplied {
			s.becomes(r)
			s.log.Info("a revision that was proposed here is in force", "index", r.Number, "root", r.Root.Short())
			return
		}
	}
}

// becomes makes a revision of what was proposed last the base.
func (s *Store) becomes(r Revision) {
	next := s.proposed.Base.clone()
	next.Number = r.Number
	s.proposed = nil
	s.setBase(next)
}
