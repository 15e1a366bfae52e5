package epochs

import (
	"sync"
	"time"
)

// maxFormer bounds the generations before the current one that are still good: rotations may follow each other faster
// than minions sign in.
const maxFormer = 4

// Seed is one generation of what session keys are derived from.
type Seed struct {
	Number uint64
	Secret []byte
}

// Seeds holds the generations of the session seed that are good now: the current one, and for a while those before it,
// with whose session keys minions come that have not signed in since. It is safe for concurrent use.
type Seeds struct {
	now func() time.Time

	mu     sync.Mutex
	cur    Seed
	former []formerSeed // newest first
}

type formerSeed struct {
	Seed
	until time.Time
}

// NewSeeds returns one without a seed.
func NewSeeds(now func() time.Time) *Seeds { return &Seeds{now: now} }

// Begin makes cur the current generation. From then on the ones before it are good for as long as window: prev, which
// consensus knows (number 0: there is none), and what was current here. A generation that is not above the current one
// changes nothing.
func (s *Seeds) Begin(cur, prev Seed, window time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cur.Number <= s.cur.Number {
		return
	}
	until := s.now().Add(window)
	former := make([]formerSeed, 0, maxFormer)
	add := func(f formerSeed) {
		if f.Number > 0 && len(former) < maxFormer {
			former = append(former, f)
		}
	}
	if prev.Number != s.cur.Number { // this node was away, or has just started
		add(formerSeed{prev, until})
	}
	add(formerSeed{s.cur, until})
	for _, f := range s.former {
		add(f)
	}
	s.cur, s.former = cur, former
}

// Current returns the current generation; number 0 before the first Begin.
func (s *Seeds) Current() Seed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cur
}

// Former returns the generations before it that are good now, the newest first.
func (s *Seeds) Former() (good []Seed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, f := range s.former {
		if now.Before(f.until) {
			good = append(good, f.Seed)
		}
	}
	return good
}
