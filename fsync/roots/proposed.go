package roots

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"saltclusterd/fsync/tree"
)

// proposed is a proposal that was made, or was about to be, and what the base has of it when it has become a revision.
// It is on the disk, with all that names the tree, before any other node hears of it: a node that is killed in that
// moment would otherwise leave a revision behind that no node can read, and take what was edited here since for a
// conflict with its own revision.
type proposed struct {
	Parent uint64
	Root   Hash
	Slots  map[SlotName]Hash     // that were part of it; others are as the base has them
	Idents map[SlotName]dirIdent // the directories they were on
	Held   bool                  // to be decided by an operator: then what is live has been edited on, or was put back
	Again  bool                  // it was proposed before: that it is refused now says nothing of that
	Boot   string                // the machine's run: after the next start the disk may not have what was edited
}

// maxProposed bounds the proposals that are remembered. All have the base as their parent, so one of them can become a
// revision at most; there are many when the leader is lost each time before it answers.
const maxProposed = 16

// willPropose makes a proposal outlast a crash.
func (s *Store) willPropose(p Proposal, e *edits) error {
	if err := errors.Join(s.putLive(), s.db.putObjects(e.objects)); err != nil {
		return err
	}
	fresh := proposed{
		Parent: p.Parent, Root: p.Root, Slots: map[SlotName]Hash{}, Idents: map[SlotName]dirIdent{},
		Held: p.Held && !p.Confirmed, Boot: s.boot,
	}
	for _, st := range e.slots {
		fresh.Slots[st.Name], fresh.Idents[st.Name] = st.dir, st.ident
	}
	list := slices.DeleteFunc(s.openProposals(), func(o proposed) bool {
		same := o.Root == p.Root
		if same {
			fresh.Again, fresh.Held = true, fresh.Held && o.Held
		}
		return same
	})
	s.proposed = append(list, fresh)
	s.proposed = s.proposed[max(0, len(s.proposed)-maxProposed):]
	s.baseUnsaved = true
	if err := s.saveBase(); err != nil { // which is never older than the parent then
		return fmt.Errorf("write down a proposal: %w", err)
	}
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

// refused forgets the last proposal when an error says that it is not a revision and will never be one.
func (s *Store) refused(err error) {
	last := len(s.proposed) - 1
	sure := errors.Is(err, ErrNotCurrent) || errors.Is(err, ErrNoQuorum) && !errors.Is(err, ErrUncertain)
	if sure && !s.proposed[last].Again {
		s.proposed, s.baseUnsaved = s.proposed[:last], true
	}
}

// successor is the revision that came after the base, nil when the log does not name it (any more), and the proposal of
// ours that it is.
func (s *Store) successor() (rev *Revision, own *proposed) {
	open := s.openProposals()
	for _, r := range s.cfg.Log.Revisions() {
		if r.Parent != s.base.Number || r.State != StateApplied {
			continue
		}
		i := slices.IndexFunc(open, func(p proposed) bool {
			return r.Author == s.cfg.Self && r.Kind != KindRollback && r.Root == p.Root
		})
		if i < 0 {
			return &r, nil
		}
		return &r, &open[i]
	}
	return nil, nil
}

// adopt makes a proposal the base when it has become a revision and this node has not seen the outcome, because of a
// crash or an answer that was lost: what is on this disk comes from it.
func (s *Store) adopt() (adopted bool) {
	if len(s.openProposals()) == 0 {
		return false
	}
	rev, own := s.successor()
	if own == nil || own.Held || s.older(own) {
		return false
	}
	s.becomes(*own, rev.Number)
	s.log.Info("a revision that was proposed here is in force", "revision", rev.Number, "root", rev.Root.Short())
	return true
}

// older says whether a proposal is from before the machine's start, so that the disk may have lost what was edited. One
// that waited for an operator is on it since long.
func (s *Store) older(p *proposed) bool { return p.Boot != "" && p.Boot != s.boot && !p.Held }

// orphanAfter is how long others are asked for what this disk has lost of a revision of this node.
const orphanAfter = time.Minute

// adoptLost makes a revision of this node the base though its disk has lost something of it, when no other node has
// that: what is on the disk becomes the next edit. Otherwise no edit would be possible from then on.
func (s *Store) adoptLost(head Revision) bool {
	rev, own := s.successor()
	if own == nil || rev.Number != head.Number || !s.older(own) {
		return false
	}
	if s.lostSince.IsZero() {
		s.lostSince = time.Now()
	}
	if len(s.cfg.Peers.Members()) > 0 && time.Since(s.lostSince) < orphanAfter {
		return false
	}
	s.log.Warn("no other node has files of a revision that was made here before this machine stopped: the state on the disk counts",
		"revision", rev.Number)
	before := s.base.Slots
	s.becomes(*own, rev.Number)
	for _, st := range s.slots {
		if dir, ok := own.Slots[st.Name]; ok && dir != before[st.Name] {
			st.spell = spell{Began: time.Now(), From: before[st.Name], To: dir, Adopted: true}
		}
	}
	s.dirty = true
	return true
}

// becomes makes a revision of what was proposed the base.
func (s *Store) becomes(p proposed, number uint64) {
	next := s.base.clone()
	next.Number, next.Root, next.Merged = number, p.Root, false
	maps.Copy(next.Slots, p.Slots)
	maps.Copy(next.Idents, p.Idents)
	s.setBase(next)
}

// mergeBase is what the edits of a slot are edits of, compared with a later revision: the base, but what theirs has of
// a proposal that, as far as this node knows, is part of it. The log may have forgotten whether one is, because it
// names the last revisions only. A proposal that waited for an operator counts where there is an edit: a file that was
// put back before its removal was confirmed is not an edit.
func (s *Store) mergeBase(put tree.Memory, slot SlotName, base, ours, theirs Hash) (Hash, error) {
	rev, own := s.successor()
	switch {
	case own != nil && s.older(own): // what the disk still has of it
		return s.advance(put, *own, slot, base, ours)
	case own != nil:
		next, err := s.advance(put, *own, slot, base, theirs)
		if err == nil && own.Held {
			next, err = tree.Advance(s, put, next, base, ours)
		}
		return next, err
	case rev != nil:
		return base, nil
	}
	for _, p := range s.openProposals() {
		if p.Held {
			continue
		}
		next, err := s.advance(put, p, slot, base, theirs)
		if err == nil && s.older(&p) {
			next, err = tree.Advance(s, put, base, next, ours)
		}
		if err != nil {
			return Hash{}, err
		}
		base = next
	}
	return base, nil
}

func (s *Store) advance(put tree.Memory, p proposed, slot SlotName, base, theirs Hash) (Hash, error) {
	dir, ok := p.Slots[slot]
	if !ok {
		return base, nil
	}
	next, err := tree.Advance(s, put, base, dir, theirs)
	if errors.Is(err, tree.ErrNoObject) { // a database from which something is missing
		return base, nil
	}
	return next, err
}
