package roots

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"saltclusterd/fsync/apply"
	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// keptContent is displaced content in a slot's area, by tree.Entry.Content.
type keptContent struct {
	Chunks []tree.Chunk
	Time   time.Time
}

func (k keptContent) size() int64 {
	e := tree.Entry{Chunks: k.Chunks}
	return e.Size()
}

// keepDisplaced notes displaced content, and removes the oldest beyond the bound. It returns what is to be saved; nil:
// nothing new.
func (s *Store) keepDisplaced(slot SlotName, displaced []tree.Entry, area *apply.Area) map[Hash]keptContent {
	if len(displaced) == 0 {
		return nil
	}
	s.mu.Lock()
	kept := maps.Clone(s.kept[slot])
	s.mu.Unlock()
	if kept == nil {
		kept = map[Hash]keptContent{}
	}
	now := time.Now()
	for i := range displaced {
		kept[displaced[i].Content()] = keptContent{displaced[i].Chunks, now}
	}
	evict(kept, s.cfg.HistoryBytes, area)
	s.mu.Lock()
	s.kept[slot] = kept
	s.mu.Unlock()
	return kept
}

// giveUp removes about n bytes of displaced content.
func (s *Store) giveUp(slot SlotName, area *apply.Area, n int64) {
	s.mu.Lock()
	kept := maps.Clone(s.kept[slot])
	s.mu.Unlock()
	if len(kept) == 0 {
		return
	}
	total := int64(0)
	for _, k := range kept {
		total += k.size() + blockSize
	}
	evict(kept, max(total-n, 0), area)
	s.mu.Lock()
	s.kept[slot], s.located = kept, nil
	s.mu.Unlock()
	if err := s.db.put(pair{bucketKept, []byte(slot.String()), kept}); err != nil {
		s.log.Warn("list of displaced content not saved", "err", err)
	}
}

// blockSize is about what the smallest file takes on a disk.
const blockSize = 4096

// evict removes the oldest content until the rest is within the bound.
func evict(kept map[Hash]keptContent, bound int64, area *apply.Area) {
	total := int64(0)
	for _, k := range kept {
		total += k.size() + blockSize
	}
	if total <= bound {
		return
	}
	oldest := slices.SortedFunc(maps.Keys(kept), func(a, b Hash) int {
		return cmp.Or(kept[a].Time.Compare(kept[b].Time), slices.Compare(a[:], b[:]))
	})
	for _, h := range oldest {
		if total <= bound {
			return
		}
		if err := area.Keep.Remove(h.String()); err != nil && !slotfs.Gone(err) {
			continue
		}
		total -= kept[h].size() + blockSize
		delete(kept, h)
	}
}
