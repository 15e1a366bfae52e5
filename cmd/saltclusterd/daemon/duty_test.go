package daemon

import (
	"context"
	"slices"
	"sync"
	"testing"

	"saltclusterd/cmd/saltclusterd/drain"
	"saltclusterd/cmd/saltclusterd/masterlink"
)

// Each duty starts once, in a cold start as in a takeover.
func TestStartDuties(t *testing.T) {
	coldStart := []stage{consensusOpen, partsOpen, edgesOpen}
	takeover := []stage{edgesTaken, consensusOpen, disksFree}
	var all []string
	for _, d := range slices.Concat((&member{}).duties(),
		(&service{m: &member{}, drain: &drain.Runner{}, umask: &masterlink.Umask{}}).duties()) {
		if !slices.Contains(coldStart, d.coldStart) || !slices.Contains(takeover, d.takeover) {
			t.Errorf("%s never starts", d.name)
		}
		if slices.Contains(all, d.name) {
			t.Errorf("%s is there twice", d.name)
		}
		all = append(all, d.name)
	}
	for _, path := range []struct {
		stages     []stage
		isTakeover bool
	}{{coldStart, false}, {takeover, true}} {
		var mu sync.Mutex
		var wg sync.WaitGroup
		started := map[string]int{}
		var duties []duty
		for _, d := range slices.Concat((&member{}).duties(),
			(&service{m: &member{}, drain: &drain.Runner{}, umask: &masterlink.Umask{}}).duties()) {
			d.run = func(context.Context) {
				mu.Lock()
				defer mu.Unlock()
				started[d.name]++
			}
			duties = append(duties, d)
		}
		for _, at := range path.stages {
			startDuties(t.Context(), &wg, duties, at, path.isTakeover)
		}
		wg.Wait()
		for _, name := range all {
			if started[name] != 1 {
				t.Errorf("takeover %t: %s started %d times", path.isTakeover, name, started[name])
			}
		}
	}
}
