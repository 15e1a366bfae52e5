package returns

import (
	"maps"
	"slices"
	"time"

	"saltclusterd/sidecar/spool"
)

// JournalStats is a journal as it is now.
type JournalStats struct {
	Name string
	spool.Stats
	Oldest map[string]time.Time // by consumer: when the first record it is not done with came in
}

// Stats describes all journals, this node's own first.
func (s *Service) Stats() []JournalStats {
	s.mu.Lock()
	all := []*journal{s.own, s.stuck.journal, s.python}
	for _, id := range slices.Sorted(maps.Keys(s.kept)) {
		all = append(all, s.kept[id])
	}
	s.mu.Unlock()
	out := make([]JournalStats, 0, len(all))
	for _, j := range all {
		st := JournalStats{Name: j.name, Stats: j.spool.Stats()}
		j.mu.Lock()
		st.Oldest = maps.Clone(j.oldest)
		j.mu.Unlock()
		out = append(out, st)
	}
	return out
}
