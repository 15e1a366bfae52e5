package lifecycle

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	"saltclusterd/integration/require"
)

// namedPart notes when it is closed.
type namedPart struct {
	name   string
	closed *[]string
	err    error
}

func (p *namedPart) Open(context.Context) error { return p.err }

func (p *namedPart) Close() error {
	*p.closed = append(*p.closed, p.name)
	return nil
}

// Close ends what is open backwards, whatever the order in which it was opened.
func TestParts_Close(t *testing.T) {
	var closed []string
	parts := NewParts(io.Closer.Close, []Listed{
		{"a", &namedPart{name: "a", closed: &closed}, Shared}, {"b", &namedPart{name: "b", closed: &closed}, Shared},
		{"c", &namedPart{name: "c", closed: &closed}, Exclusive},
		{"d", &namedPart{name: "d", closed: &closed, err: errors.New("no")}, Incoming},
		{"e", &namedPart{name: "e", closed: &closed}, Outgoing}, {"f", &namedPart{name: "f", closed: &closed}, Shared},
		{"g", &Funcs{}, Shared},
	})
	for _, of := range []Phase{Exclusive, Shared, Outgoing, Incoming} {
		if err := parts.OpenPhase(t.Context(), of); (err != nil) != (of == Incoming) {
			t.Errorf("phase %d: %v", of, err)
		}
	}
	require.NoError(t, parts.ClosePhase(Exclusive)) // an old process does that beforehand
	if err := parts.Close(); err != nil || !slices.Equal(closed, []string{"c", "f", "e", "b", "a"}) {
		t.Errorf("%q, %v", closed, err)
	}
}

func TestDuties_Start(t *testing.T) {
	var mu sync.Mutex
	started := map[string]int{}
	run := func(name string) func(context.Context) {
		return func(context.Context) {
			mu.Lock()
			defer mu.Unlock()
			started[name]++
		}
	}
	duties := Duties{
		{"a", ConsensusOpen, ConsensusOpen, run("a")}, {"b", PartsOpen, EdgesTaken, run("b")},
		{"c", EdgesOpen, DisksFree, run("c")},
	}
	for in, stages := range map[Start][]Stage{
		ColdStart: {ConsensusOpen, PartsOpen, EdgesOpen}, Takeover: {EdgesTaken, ConsensusOpen, DisksFree},
	} {
		clear(started)
		var wg sync.WaitGroup
		for _, at := range stages {
			duties.Start(t.Context(), &wg, at, in)
		}
		wg.Wait()
		for _, name := range []string{"a", "b", "c"} {
			if started[name] != 1 {
				t.Errorf("start %d: %s started %d times", in, name, started[name])
			}
		}
	}
}

func TestBackground(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	started, ended := make(chan context.Context, 1), false
	b := &Background{Run: func(ctx context.Context) {
		started <- ctx
		<-ctx.Done()
		ended = true
	}}
	require.NoError(t, b.Open(ctx))
	cancel() // what opened it has ended
	if (<-started).Err() != nil {
		t.Error("its context ended with that of Open")
	}
	if err := b.Close(); err != nil || !ended {
		t.Errorf("%v, ended: %v", err, ended)
	}
}
