package roots

import (
	"context"
	"errors"
	"fmt"
	"time"

	"saltclusterd/fsync/apply"
	"saltclusterd/fsync/tree"
	"saltclusterd/gossip/node"
)

// maxReserve is disk space that a change never takes; of a small disk, a twentieth.
const maxReserve = 64 << 20

// stage brings together what plans need: from this disk, and from peers. flushed says that it is on the disk.
func (s *Store) stage(ctx context.Context, head Revision, plans []apply.Plan,
	areas map[SlotName]*apply.Area) (flushed bool, err error) {
	stages := make([]*apply.Stage, len(plans))
	var missing []tree.Chunk
	listed := map[Hash]bool{}
	for i := range plans {
		st, err := apply.OpenStage(ctx, areas[plans[i].Slot], &plans[i], s.cfg.UID, s.cfg.GID)
		if err != nil {
			return false, err
		}
		stages[i] = st
		need := int64(0)
		for _, c := range st.Missing() {
			need += int64(c.Size)
			if !listed[c.Hash] {
				listed[c.Hash] = true
				missing = append(missing, c)
			}
		}
		if err := s.makeRoom(plans[i].Slot, areas[plans[i].Slot], need); err != nil {
			return false, err
		}
	}
	put := func(h Hash, b []byte) error {
		for _, st := range stages {
			if err := st.Put(h, b); err != nil {
				return err
			}
		}
		s.progressed(stages, int64(len(b)))
		return nil
	}
	s.phase(PhaseFetch)
	s.staging(head, stages, missing)
	began := time.Now()
	if err := s.fetchMissing(ctx, head, missing, put); err != nil {
		return false, err
	}
	fetched := time.Now()
	flushed = true
	for _, st := range stages {
		if err := st.Finish(); err != nil {
			return false, err
		}
		done, err := st.Flush()
		if err != nil {
			return false, err
		}
		flushed = flushed && done
	}
	s.log.Debug("content staged", "revision", head.Number, "dur", fetched.Sub(began), "flush", time.Since(fetched))
	return flushed, nil
}

// makeRoom gives up displaced content when the disk is too full for what is to be staged.
func (s *Store) makeRoom(slot SlotName, area *apply.Area, need int64) error {
	if need == 0 { // what only removes and moves is welcome on a full disk
		return nil
	}
	free, total, err := area.Stage.Space()
	reserve := min(maxReserve, total/20)
	if err != nil || free-reserve >= need {
		return nil // a file system that does not tell shows it when it is full
	}
	s.giveUp(slot, area, need+reserve-free)
	if free, _, err = area.Stage.Space(); err == nil && free-reserve < need {
		return fmt.Errorf("stage %s: the disk is too full: %d MiB needed, %d MiB free in %s", slot, need>>20,
			free>>20, area.Path)
	}
	return nil
}

// fetchMissing puts chunks, from this disk where it has them.
func (s *Store) fetchMissing(ctx context.Context, head Revision, missing []tree.Chunk,
	put func(Hash, []byte) error) error {
	disk := s.newDiskReader()
	defer disk.close()
	var wants []tree.Chunk
	for _, c := range missing {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := disk.chunk(c.Hash)
		if errors.Is(err, errNotHere) {
			wants = append(wants, c)
			continue
		}
		if err == nil {
			err = put(c.Hash, b)
		}
		if err != nil {
			return err
		}
	}
	if len(wants) == 0 {
		return nil
	}
	ctx, cancel := s.whileHead(ctx, head)
	defer cancel()
	err := s.transfer.Fetch(ctx, s.firstAsked(head), wants, put)
	if errors.Is(context.Cause(ctx), errHeadMoved) {
		return errHeadMoved
	}
	return err
}

// firstAsked is the node that made a revision, because it may be the only one that has it yet. It is empty for a
// revision that was in force when this node started: others have that as well, and the node with the least to do is
// asked first, as Peers lists them.
func (s *Store) firstAsked(head Revision) node.ID {
	if head.Number <= s.found {
		return ""
	}
	return head.Author
}

func (s *Store) staging(head Revision, stages []*apply.Stage, missing []tree.Chunk) {
	total := int64(0)
	for _, c := range missing {
		total += int64(c.Size)
	}
	s.mu.Lock()
	s.progress.Revision, s.progress.Bytes = head.Number, total
	s.mu.Unlock()
	s.progressed(stages, 0)
}

func (s *Store) progressed(stages []*apply.Stage, n int64) {
	files, done := 0, 0
	for _, st := range stages {
		f, d := st.Progress()
		files, done = files+f, done+d
	}
	s.mu.Lock()
	s.progress.Files, s.progress.FilesDone = files, done
	s.progress.BytesDone += n
	s.mu.Unlock()
}
