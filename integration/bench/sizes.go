package main

import "time"

// sizes say how much a run does. All loads are bounded by them in count and in time.
type sizes struct {
	rounds int
	limit  time.Duration // of the whole run

	minions int // key pairs
	fleet   int // accepted keys beside those, of minions that do not play
	signIns int // per side and round

	realRate, fullRate int           // requests per second towards a stock master and towards the stand-in
	forwardFor         time.Duration // per side and round
	floodFor           time.Duration // in one piece

	subscribers        []int // idle ones, in growing order
	memoryRounds       int
	upgrades           int
	upgradeSubscribers []int
	settle             time.Duration // before memory is looked at: longer than a heartbeat
	edge               []edgeRun

	herd       int // played minions that answer jobs
	herdRounds int
	kills      int // of a node

	modelSizes []int // herds that the model is compared with
	modelJobs  int

	known      int // minions that a joiner has to learn of
	dataRounds int
	accepts    int // keys, one after the other

	chunks, hashes int // per side and round
	pillarCount    int // the same

	rootsRounds int
	rootsEdits  int // and checks, per side and round
	rootsTrees  []rootsTree
}

// rootsTree is a tree of files of one size, some of which are in each directory.
type rootsTree struct {
	name        string
	files, size int
	edited      bool // checks and edits of it are measured, too
}

// edgeRun is one call of edgebench.
type edgeRun struct{ what, flags []string }

func (o options) size() sizes {
	s := sizes{
		rounds: 5, limit: 90 * time.Minute, minions: 24, fleet: 1000, signIns: 1000, chunks: 192, hashes: 1000, pillarCount: 60, realRate: 200, fullRate: 1000, forwardFor: 4 * time.Second, floodFor: 30 * time.Second,
		subscribers: []int{5000, 10000}, memoryRounds: 3, settle: 11 * time.Second, upgrades: 7, upgradeSubscribers: []int{2000, 8000}, herd: 1000, herdRounds: 2, kills: 3,
		modelSizes: []int{1000, 5000}, modelJobs: 3, known: 10_000, dataRounds: 3, accepts: 100, rootsRounds: 5, rootsEdits: 5,
		rootsTrees: []rootsTree{
			{"5,000 files, 200 MB", 5000, 40_000, true}, {"20,000 files, 20 MB", 20_000, 1000, false},
			{"50,000 files, 100 MB", 50_000, 2000, false}, {"one file of 2 GiB", 1, 2 << 30, false},
		},
		edge: []edgeRun{
			{[]string{"echo", "fanout"}, []string{"-n", "5", "-clients", "1000,5000", "-seconds", "1", "-burst", "65536"}},
			{[]string{"stalled"}, []string{"-n", "5", "-clients", "1000", "-burst", "65536"}}, // 5,000 would take minutes more
		},
	}
	if o.quick {
		s = sizes{
			rounds: 2, limit: 10 * time.Minute, minions: 8, fleet: 200, signIns: 100, chunks: 96, hashes: 300, pillarCount: 24, realRate: 100, fullRate: 1000, forwardFor: 2 * time.Second, floodFor: 2 * time.Second,
			subscribers: []int{1000}, memoryRounds: 1, settle: 3 * time.Second, upgrades: 2, upgradeSubscribers: []int{500}, herd: 200, herdRounds: 1, kills: 1,
			modelSizes: []int{600}, modelJobs: 2, known: 1000, dataRounds: 1, accepts: 20, rootsRounds: 2, rootsEdits: 2,
			rootsTrees: []rootsTree{{"5,000 files, 200 MB", 5000, 40_000, true}},
			edge: []edgeRun{
				{sections[:3], []string{"-n", "2", "-clients", "200", "-sizes", "1024", "-seconds", "0.5", "-burst", "65536"}},
			},
		}
	}
	if o.flood > 0 {
		s.floodFor = o.flood
	}
	if o.herdSize > 0 {
		s.herd, s.modelSizes = o.herdSize, []int{o.herdSize}
	}
	if s.herd > 2000 { // one takes minutes
		s.limit, s.herdRounds = 2*time.Hour, 1
	}
	if o.wants("model") {
		s.limit = 2 * time.Hour
	}
	if o.rounds > 0 {
		s.rounds, s.dataRounds, s.rootsRounds = o.rounds, min(s.dataRounds, o.rounds), o.rounds
		if s.herd > 2000 {
			s.herdRounds = o.rounds
		}
	}
	return s
}
