package lifecycle

import (
	"context"
	"sync"
)

// Stage is a point in the life of a process at which duties start. A cold start passes ConsensusOpen, PartsOpen and
// EdgesOpen; a process that takes over from another one passes EdgesTaken, ConsensusOpen and DisksFree.
type Stage int

const (
	ConsensusOpen Stage = iota // consensus and gossip are open
	PartsOpen                  // everything but the edges is open, on disk as well
	EdgesOpen                  // minions can connect
	EdgesTaken                 // the connections of the old process are served
	DisksFree                  // the old process has closed what only one process can have open
)

// Start says in which way a process has started.
type Start int

const (
	ColdStart Start = iota
	Takeover
)

// Duty is a background task that runs until its context ends.
type Duty struct {
	Name        string
	InColdStart Stage
	InTakeover  Stage
	Run         func(context.Context)
}

// Duties are the background tasks of a service.
type Duties []Duty

// Start starts the duties of a stage in wg.
func (d Duties) Start(ctx context.Context, wg *sync.WaitGroup, at Stage, in Start) {
	for _, duty := range d {
		starts := duty.InColdStart
		if in == Takeover {
			starts = duty.InTakeover
		}
		if starts == at {
			wg.Go(func() { duty.Run(ctx) })
		}
	}
}

// RunAll runs functions side by side and returns when all have ended.
func RunAll(ctx context.Context, functions ...func(context.Context)) {
	var wg sync.WaitGroup
	for _, run := range functions {
		wg.Go(func() { run(ctx) })
	}
	wg.Wait()
}
