package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// Stage is the content that a plan needs, while it comes together in the area. What an earlier try has left there is
// found again. Put may be called from several goroutines.
type Stage struct {
	area     *Area
	plan     *Plan
	uid, gid int

	mu    sync.Mutex
	want  map[tree.Hash][]target
	sizes map[tree.Hash]uint32
	files int
	left  int // files that are not complete
}

// target is where a chunk belongs.
type target struct {
	file   *staged
	offset int64
}

type staged struct {
	op   *Op
	size int64
	left int // chunks
}

// OpenStage looks at what is staged already, and removes what no operation needs. A switch of the slot that was cut off
// is completed before by Run, or its edits are put aside by Abandon: between an exchange and the next step, what an
// operator had at a path is in the stage. Limit: an area inside of the slot goes away with the slot's directory, and
// when that comes back after another switch of the slot, edits in its stage are not recognised.
func OpenStage(ctx context.Context, area *Area, plan *Plan, uid, gid int) (*Stage, error) {
	s := &Stage{area: area, plan: plan, uid: uid, gid: gid, want: map[tree.Hash][]target{}, sizes: map[tree.Hash]uint32{}}
	there, err := s.cleanStage()
	if err != nil {
		return nil, fmt.Errorf("stage: %w", err)
	}
	for i := range plan.Ops {
		op := &plan.Ops[i]
		if op.Verb != Place || op.Entry.Type != tree.File {
			continue
		}
		if err := s.stageFile(ctx, op, there[op.Stage]); err != nil {
			return nil, fmt.Errorf("stage %q: %w", op.Path, err)
		}
	}
	return s, nil
}

// cleanStage lists the staged files of the plan and removes the others.
func (s *Stage) cleanStage() (map[string]bool, error) {
	needed := map[string]bool{}
	for i := range s.plan.Ops {
		if op := &s.plan.Ops[i]; op.Verb == Place && op.Entry.Type == tree.File {
			needed[op.Stage] = true
		}
	}
	dir, err := s.area.Stage.Sub(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Names()
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, n := range names {
		if needed[n] {
			there[n] = true
		} else if err := dir.Remove(n); err != nil && !slotfs.Gone(err) {
			return nil, err
		}
	}
	return there, nil
}

// stageFile notes which chunks of a file are missing.
func (s *Stage) stageFile(ctx context.Context, op *Op, there bool) error {
	f := &staged{op: op, size: op.Entry.Size()}
	have, err := s.findPresent(ctx, op, there)
	if err != nil {
		return err
	}
	s.files++
	offset := int64(0)
	for i, c := range op.Entry.Chunks {
		if !have[i] {
			f.left++
			s.want[c.Hash] = append(s.want[c.Hash], target{f, offset})
			s.sizes[c.Hash] = c.Size
		}
		offset += int64(c.Size)
	}
	if f.left > 0 {
		s.left++
		return nil
	}
	return s.completeFile(f, nil)
}

// findPresent tells which chunks of a file an earlier try has written.
func (s *Stage) findPresent(ctx context.Context, op *Op, there bool) ([]bool, error) {
	have := make([]bool, len(op.Entry.Chunks))
	if !there {
		return have, nil
	}
	f, _, err := s.area.Stage.File(op.Stage)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buf := make([]byte, 0, 64<<10)
	offset := int64(0)
	for i, c := range op.Entry.Chunks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if cap(buf) < int(c.Size) {
			buf = make([]byte, c.Size)
		}
		b := buf[:c.Size]
		_, err := f.ReadAt(b, offset)
		have[i] = (err == nil || errors.Is(err, io.EOF)) && tree.Sum(b) == c.Hash
		offset += int64(c.Size)
	}
	return have, nil
}

// Missing lists the chunks that are to be put, in the order of the paths, so that those of a directory are neighbours.
func (s *Stage) Missing() []tree.Chunk {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]tree.Chunk, 0, len(s.want))
	listed := make(map[tree.Hash]bool, len(s.want))
	for i := range s.plan.Ops {
		for _, c := range s.plan.Ops[i].Entry.Chunks {
			if _, wanted := s.want[c.Hash]; wanted && !listed[c.Hash] {
				listed[c.Hash] = true
				out = append(out, c)
			}
		}
	}
	return out
}

// Progress tells how many files there are to stage, and how many are complete.
func (s *Stage) Progress() (files, done int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files, s.files - s.left
}

// Put writes a chunk, whose hash the caller has verified, wherever it belongs. A chunk that nothing needs is ignored.
func (s *Stage) Put(h tree.Hash, b []byte) error {
	s.mu.Lock()
	targets, size := s.want[h], s.sizes[h]
	if len(targets) > 0 && int(size) == len(b) {
		delete(s.want, h)
	} else {
		targets = nil
	}
	s.mu.Unlock()
	for i, t := range targets {
		if err := s.writeChunk(t, b); err != nil {
			s.mu.Lock()
			s.want[h] = append(s.want[h], targets[i:]...)
			s.mu.Unlock()
			return fmt.Errorf("stage %q: %w", t.file.op.Path, err)
		}
	}
	return nil
}

func (s *Stage) writeChunk(t target, b []byte) error {
	f, err := s.area.Stage.Create(t.file.op.Stage, false)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(b, t.offset); err != nil {
		return err
	}
	s.mu.Lock()
	t.file.left--
	last := t.file.left == 0
	if last {
		s.left--
	}
	s.mu.Unlock()
	if last {
		return s.completeFile(t.file, f)
	}
	return nil
}

// completeFile gives a file that has all its content its length, owner and permissions, and notes its inode.
func (s *Stage) completeFile(t *staged, f *os.File) (err error) {
	if f == nil {
		if f, err = s.area.Stage.Create(t.op.Stage, false); err != nil {
			return err
		}
		defer f.Close()
	}
	if len(t.op.Entry.Chunks) != 1 || t.size == 0 {
		if err := f.Truncate(t.size); err != nil {
			return err
		}
	}
	if s.uid >= 0 {
		if err := f.Chown(s.uid, s.gid); err != nil {
			return err
		}
	}
	if err := f.Chmod(os.FileMode(t.op.Entry.Mode)); err != nil {
		return err
	}
	st, err := slotfs.StatFile(f)
	t.op.StageIno, t.op.StageMod = st.Ino, st.Mtime
	return err
}

// Finish makes the symlinks. It fails when chunks are missing.
func (s *Stage) Finish() error {
	if n := len(s.Missing()); n > 0 {
		return fmt.Errorf("stage: %d chunks are missing", n)
	}
	dir := s.area.Stage
	for i := range s.plan.Ops {
		op := &s.plan.Ops[i]
		if op.Verb != Place || op.Entry.Type != tree.Symlink {
			continue
		}
		if err := dir.Symlink(op.Entry.Target, op.Stage); err != nil {
			return err
		}
		if s.uid >= 0 {
			if err := dir.Chown(op.Stage, s.uid, s.gid); err != nil {
				return err
			}
		}
		st, err := dir.Stat(op.Stage)
		if err != nil {
			return err
		}
		op.StageIno, op.StageMod = st.Ino, st.Mtime
	}
	return nil
}

// Limits of what is brought to the disk before a switch, in files and bytes.
const (
	flushFiles = 16
	flushBytes = 16 << 20
)

// Flush brings what is staged to the disk when that is little. Otherwise it returns false: then the switch does not
// wait for the disk, the area is flushed after it, and a caller that resumes that switch later calls Verify first.
func (s *Stage) Flush() (done bool, err error) {
	files, bytes := 0, int64(0)
	for i := range s.plan.Ops {
		if op := &s.plan.Ops[i]; op.Verb == Place && op.Entry.Type == tree.File {
			files, bytes = files+1, bytes+op.Entry.Size()
		}
	}
	if files > flushFiles || bytes > flushBytes {
		return false, nil
	}
	for i := range s.plan.Ops {
		if op := &s.plan.Ops[i]; op.Verb == Place && op.Entry.Type == tree.File {
			if err := s.area.Stage.FlushFile(op.Stage); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}
