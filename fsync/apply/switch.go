package apply

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// Outcome tells what a switch did.
type Outcome struct {
	Installed, Removed int
	Kept               []string // paths that were edited since the plan was made; they are as they were
	Displaced          []tree.Entry
	Aside              []Aside
	Flush              *Flush // also of a switch that has failed; for the caller to close
}

// Aside is something that was put aside.
type Aside struct {
	ID, Path, Reason string
	Type             tree.Type
	Size             int64 // of a file
}

// Switcher carries out plans.
type Switcher struct {
	Area     *Area
	UID, GID int // of what is made; -1: as it comes
	// Step, if set, is called before every change of the disk; an error ends the switch there, as if it had been killed.
	Step func() error

	dir     *slotfs.Dir // of the last path
	dirPath string
	out     Outcome
	ended   bool // by Step
}

// Run carries out a plan, or the rest of it. After an error it may be repeated.
func (s *Switcher) Run(p *Plan) (Outcome, error) {
	defer s.closeParent()
	s.out = Outcome{Flush: &Flush{}}
	for i := range p.Ops {
		op := &p.Ops[i]
		if err := s.runOp(i, op); err != nil {
			return s.out, fmt.Errorf("switch %s: %q: %w", p.Slot, op.Path, err)
		}
	}
	return s.out, nil
}

func (s *Switcher) runOp(i int, op *Op) error {
	dir, name, err := s.openParent(op.Path)
	if slotfs.Gone(err) { // an operator removed the directory meanwhile
		return s.abandonOp(i, op)
	}
	if err != nil {
		return err
	}
	err = s.runVerb(i, slotfs.Place{Dir: dir, Name: name}, op)
	if slotfs.Gone(err) || isBusy(err) { // between two steps: an operator has the last word
		return s.noteLeft(i, op)
	}
	return err
}

// Abandon takes care of what runs of a plan that were cut off have taken out of the slot, as Run does, and carries out
// nothing: the slot's directory is another one. It may be repeated. The plan's files get the device number that the
// area has now.
func (s *Switcher) Abandon(p *Plan) (Outcome, error) {
	s.out = Outcome{}
	area, err := s.Area.Stage.Self()
	if err != nil {
		return s.out, fmt.Errorf("abandon a switch of %s: %w", p.Slot, err)
	}
	for i := range p.Ops {
		if was := p.Ops[i].Was; was != nil {
			was.Dev = area.Dev // of what is in the area; the number may be another since, see Renumber
		}
		if err := s.abandonOp(i, &p.Ops[i]); err != nil {
			return s.out, fmt.Errorf("abandon a switch of %s: %q: %w", p.Slot, p.Ops[i].Path, err)
		}
	}
	return s.out, nil
}

// abandonOp takes care of what an earlier run has taken out at a path.
func (s *Switcher) abandonOp(i int, op *Op) error {
	if op.Verb != Remove && op.Verb != RemoveDir {
		return s.noteLeft(i, op)
	}
	return s.settleRemoval(i, op)
}

func (s *Switcher) runVerb(i int, at slotfs.Place, op *Op) error {
	switch op.Verb {
	case MakeDir:
		return s.makeDir(at, op)
	case Place, Restore:
		return s.placeEntry(i, at, op)
	case SetMode:
		return s.setMode(at, op)
	case Remove:
		return s.removeEntry(i, at, op)
	case RemoveDir:
		return s.removeDir(at, op)
	}
	return fmt.Errorf("verb %d", op.Verb)
}

func (s *Switcher) openParent(path string) (*slotfs.Dir, string, error) {
	dir, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		dir, name = path[:i], path[i+1:]
	}
	if s.dir == nil || s.dirPath != dir {
		s.closeParent()
		d, err := s.Area.Live.Walk(dir)
		if err != nil {
			return nil, "", err
		}
		s.dir, s.dirPath = d, dir
		if s.out.Flush != nil {
			if err := s.out.Flush.noteDir(d); err != nil {
				return nil, "", err
			}
		}
	}
	return s.dir, name, nil
}

func (s *Switcher) closeParent() {
	if s.dir != nil {
		_ = s.dir.Close()
		s.dir = nil
	}
}

func (s *Switcher) runHook() error {
	if s.Step == nil {
		return nil
	}
	err := s.Step()
	s.ended = err != nil
	return err
}

func (s *Switcher) noteKept(op *Op) { s.out.Kept = append(s.out.Kept, op.Path) }

func (s *Switcher) makeDir(at slotfs.Place, op *Op) error {
	if err := s.runHook(); err != nil {
		return err
	}
	err := at.Dir.Mkdir(at.Name, op.Entry.Mode)
	if errors.Is(err, fs.ErrExist) {
		st, serr := at.Dir.Stat(at.Name)
		if serr == nil && st.Type != tree.Dir {
			s.noteKept(op)
			return nil
		}
		err = at.Dir.Chmod(at.Name, op.Entry.Mode)
	}
	if err != nil {
		return err
	}
	if s.UID >= 0 {
		return at.Dir.Chown(at.Name, s.UID, s.GID)
	}
	return nil
}

func (s *Switcher) setMode(at slotfs.Place, op *Op) error {
	st, err := at.Dir.Stat(at.Name)
	if slotfs.Gone(err) || err == nil && st.Type != op.Entry.Type {
		s.noteKept(op)
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.runHook(); err != nil {
		return err
	}
	s.out.Installed++
	return at.Dir.Chmod(at.Name, op.Entry.Mode)
}

// notEmpty is why a directory is put aside.
const notEmpty = "it was in a directory that became something else"

func (s *Switcher) removeDir(at slotfs.Place, op *Op) error {
	if err := s.runHook(); err != nil {
		return err
	}
	aside := slotfs.Place{Dir: s.Area.Aside, Name: op.AsideID}
	err := at.Dir.RemoveDir(at.Name)
	switch {
	case slotfs.Gone(err):
		return s.settleRemoval(0, op)
	case err == nil:
		return nil
	case !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST):
		return err
	case !op.Early: // what is ignored, or has been made meanwhile, stays
		return nil
	}
	if err := s.runHook(); err != nil {
		return err
	}
	err = s.putAside(at, aside, op, notEmpty)
	// With files that came meanwhile, and what is not part of the tree: those that were have gone one by one.
	if isFar(err) {
		s.noteKept(op)
		return nil
	}
	return err
}
