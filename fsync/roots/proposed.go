package roots

import (
	"errors"
	"fmt"
	"slices"

	"saltclusterd/fsync/tree"
)

// proposed is a proposal that was made, or was about to be, and what the base is when it has become a revision. It is on the disk, with
// all that names the tree, before anybody hears of it: a node that is killed in that moment would otherwise leave a revision behind
// that nobody can read, and take what was edited here since for a conflict with its own revision.
type proposed struct {
	Parent uint64
	Base   base // Number is not known yet
	Held   bool // to be decided by an operator: then what is live has been edited on, or was put back
	Again  bool // it was proposed before: that it is refused now says nothing of that
}

// maxProposed bounds the proposals that are remembered. All have the base as their parent, so one of them can become a revision at most;
// there are many when the leader is lost each time before it answers.
const maxProposed = 16

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
	fresh := proposed{Parent: p.Parent, Base: next, Held: p.Held && !p.Confirmed}
	list := slices.DeleteFunc(s.openProposals(), func(o proposed) bool {
		same := o.Base.Root == p.Root
		if same {
			fresh.Again, fresh.Held = true, fresh.Held && o.Held
		}
		return same
	})
	s.proposed = append(list, fresh)
	s.proposed = s.proposed[max(0, len(s.proposed)-maxProposed):]
	// With the base, which is never older than the parent then.
	if err := s.db.put(pair{bucketMeta, keyBase, s.base}, pair{bucketMeta, keyProposals, s.proposed}); err != nil {
		return fmt.Errorf("write down a proposal: %w", err)
	}
	s.baseUnsaved = false
	return nil
}

// openProposals are those that may be, or become, the revision after the base.
func (s *Store) openProposals() []proposed {
	var open []proposed
	for _, p := range s.proposed {
		if p.Parent == s.base.Number {
			open = append(open, p)
		}
	}
	return open
}

// refused forgets the last proposal when an error says that it is no revision and will never be one.
func (s *Store) refused(err error) {
	last := len(s.proposed) - 1
	sure := errors.Is(err, ErrNotCurrent) || errors.Is(err, ErrNoQuorum) && !errors.Is(err, ErrUncertain)
	if sure && !s.proposed[last].Again {
		s.proposed = s.proposed[:last]
	}
}

// adopt makes a proposal the base whose end nobody here has seen, because of a crash or an answer that was lost, when it has become a
// revision: what is on this disk comes from it.
func (s *Store) adopt() (adopted bool) {
	open := s.openProposals()
	if len(open) == 0 {
		return false
	}
	for _, r := range s.cfg.Log.Revisions() {
		if r.Author != s.cfg.Self || r.Kind == KindRollback || r.State != StateApplied {
			continue
		}
		for _, p := range open {
			if r.Parent == p.Parent && r.Root == p.Base.Root && !p.Held {
				s.becomes(p, r)
				s.log.Info("a revision that was proposed here is in force", "index", r.Number, "root", r.Root.Short())
				return true
			}
		}
	}
	return false
}

// becomes makes a revision of what was proposed the base.
func (s *Store) becomes(p proposed, r Revision) {
	next := p.Base.clone()
	next.Number = r.Number
	s.setBase(next)
}

// mergeBase is what the edits of a slot are edits of, compared with a revision: the base, but what the revision has of proposals whose end
// was never seen here. The log names only the last revisions: who comes back late does not find his own among them.
func (s *Store) mergeBase(put tree.Memory, slot SlotName, base, theirs Hash) (Hash, error) {
	for _, p := range s.openProposals() {
		if p.Held {
			continue
		}
		next, err := tree.Advance(s, put, base, p.Base.Slots[slot], theirs)
		if errors.Is(err, tree.ErrNoObject) { // a database from which something is missing
			continue
		}
		if err != nil {
			return Hash{}, err
		}
		base = next
	}
	return base, nil
}
