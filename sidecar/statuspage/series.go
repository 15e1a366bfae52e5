package statuspage

import (
	"context"
	"sync"
	"time"
)

const (
	// Step is what a point of a series stands for, steps how many there are.
	Step  = 30 * time.Second
	steps = 120
)

// Measure is something that is counted.
type Measure struct {
	Name string
	// Level says that the values are shown as they are; otherwise what they have grown by, per second.
	Level bool
	Doc   string
}

// Line is a measure over the last hour, the oldest first.
type Line struct {
	Measure
	Points []float64 // at most steps; fewer when the program was started since
}

// Series remembers measures over the last hour.
type Series struct {
	measures []Measure
	read     func() []float64 // a value for each measure; nil: none can be had now

	mu     sync.Mutex
	before []float64
	at     time.Time
	points [][]float64
}

// NewSeries makes series of what read returns, in the order of the measures.
func NewSeries(measures []Measure, read func() []float64) *Series {
	return &Series{measures: measures, read: read}
}

// Run takes a point every Step until ctx ends.
func (s *Series) Run(ctx context.Context) {
	s.Take(time.Now())
	tick := time.NewTicker(Step)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s.Take(now)
		}
	}
}

// Take takes a point.
func (s *Series) Take(now time.Time) {
	values := s.read()
	if len(values) != len(s.measures) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.before != nil && now.After(s.at) {
		point := make([]float64, len(values))
		for i, v := range values {
			point[i] = v
			if !s.measures[i].Level { // a counter that begins anew has grown by nothing
				point[i] = max(0, v-s.before[i]) / now.Sub(s.at).Seconds()
			}
		}
		s.points = append(s.points, point)
		if len(s.points) > steps {
			s.points = append(s.points[:0], s.points[len(s.points)-steps:]...)
		}
	}
	s.before, s.at = append(s.before[:0], values...), now
}

// Lines is what there is. A nil Series has none.
func (s *Series) Lines() []Line {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := make([]Line, len(s.measures))
	for i, m := range s.measures {
		lines[i] = Line{Measure: m, Points: make([]float64, len(s.points))}
		for n, p := range s.points {
			lines[i].Points[n] = p[i]
		}
	}
	return lines
}
