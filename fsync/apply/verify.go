package apply

import (
	"context"
	"fmt"

	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// Verify finds out which files of a plan are not, or would not become, what they should be, because the machine stopped
// before they were on its disk. Of ours, what has not its content is removed. The result tells of each such path what
// is there once the rest of the plan has been carried out; nil: nothing.
//
// What a file system had in memory is gone after a power failure: files may be empty or full of zeros, be missing, or
// have their former names. An edit is never taken for one of these: it has another inode or another time. A removal is,
// for nothing tells it from a file that the disk never had: it is undone.
func Verify(ctx context.Context, area *Area, p *Plan) (map[string]*tree.Entry, error) {
	s := Switcher{Area: area}
	defer s.closeParent()
	v := verifier{s: &s, lost: map[string]*tree.Entry{}}
	for i := range p.Ops {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if op := &p.Ops[i]; op.Verb == Place {
			if err := v.verifyOp(op); err != nil {
				return nil, fmt.Errorf("verify %s: %q: %w", p.Slot, op.Path, err)
			}
		}
	}
	return v.lost, nil
}

type verifier struct {
	s    *Switcher
	lost map[string]*tree.Entry
	buf  []byte
}

func (v *verifier) verifyOp(op *Op) error {
	var live slotfs.Stat
	dir, name, err := v.s.openParent(op.Path)
	if err == nil {
		live, err = dir.Stat(name)
	}
	if err != nil && !slotfs.Gone(err) {
		return err
	}
	found := err == nil
	if found && live.Ino == op.StageIno && live.Mtime == op.StageMod {
		return v.verifyPlaced(slotfs.Place{Dir: dir, Name: name}, op)
	}
	gone := !found || op.Was == nil && live.Type == tree.Dir // or will be: a directory gives way first
	asBefore := gone || op.Was != nil && live.Unchanged(*op.Was)
	staged := v.s.staged(op)
	now, err := staged.Dir.Stat(staged.Name)
	if err != nil && !slotfs.Gone(err) {
		return err
	}
	if err == nil && now.Ino == op.StageIno {
		good, err := v.isGood(staged, op)
		if err != nil || good {
			return err
		}
		if err := staged.Dir.Remove(staged.Name); err != nil {
			return err
		}
	}
	// Else the disk never had it, or has there what was taken out of the slot, or an operator has changed since what was
	// made of it.
	if asBefore {
		v.noteLost(op, gone)
	}
	return nil
}

// verifyPlaced looks at what has taken its place.
func (v *verifier) verifyPlaced(at slotfs.Place, op *Op) error {
	good, err := v.isGood(at, op)
	if err != nil || good {
		return err
	}
	v.noteLost(op, true)
	return at.Dir.Remove(at.Name)
}

// noteLost notes that an operation does not bring what it should; gone says that there is nothing now. What the
// operation would have put aside is not taken for what was there: it is an edit, which has to be put aside still.
func (v *verifier) noteLost(op *Op, gone bool) {
	v.lost[op.Path] = nil
	if !gone && op.Was != nil && op.Aside == "" {
		v.lost[op.Path] = &op.Old
	}
}

// isGood says whether a file has all of its content, and nothing else.
func (v *verifier) isGood(at slotfs.Place, op *Op) (bool, error) {
	if op.Entry.Type != tree.File {
		return true, nil
	}
	f, now, err := at.Dir.File(at.Name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if now.Size != op.Entry.Size() {
		return false, nil
	}
	offset := int64(0)
	for _, c := range op.Entry.Chunks {
		if cap(v.buf) < int(c.Size) {
			v.buf = make([]byte, c.Size)
		}
		b := v.buf[:c.Size]
		if n, _ := f.ReadAt(b, offset); n != len(b) || tree.Sum(b) != c.Hash { // what cannot be read is lost, too
			return false, nil
		}
		offset += int64(c.Size)
	}
	return true, nil
}
