package mines_test

import (
	"context"
	"fmt"
	"testing"
)

// hot is a kind of request, and how many allocations one may take.
type hot struct {
	name, cmd string
	loads     [][]byte // in turn
	ceiling   float64
}

// hotWorld has mines of ten functions, in a cachedir where the test's files are.
func hotWorld(t testing.TB) (*world, []hot) {
	t.Helper()
	w := newWorld(t, options(t, "", 3008))
	data := dict{}
	for i := range 10 {
		data = append(data, fmt.Sprint("fun.", i), list{"10.0.0.1", "fe80::1", i})
	}
	for _, id := range everybody {
		if _, err := w.ask(load("_mine", id, "data", data)); err != nil {
			t.Fatal(err)
		}
	}
	sets := [][]byte{wire(t, load("_mine", "m1", "data", dict{"fun.3", 1})),
		wire(t, load("_mine", "m1", "data", dict{"fun.3", 2}))}
	return w, []hot{
		{"mine", "_mine", sets, 55},
		{"mine as it was", "_mine", sets[:1], 42},
		{"get one", "_mine_get", [][]byte{wire(t, load("_mine_get", "m1", "fun", "fun.1", "tgt", "m2"))}, 34},
		{"get all seven", "_mine_get", [][]byte{wire(t, load("_mine_get", "m1", "fun", "fun.1", "tgt", "*"))}, 190},
	}
}

// TestAllocations: unlike times they do not depend on the machine.
func TestAllocations(t *testing.T) {
	w, all := hotWorld(t)
	for _, h := range all {
		i := 0
		n := testing.AllocsPerRun(100, func() {
			i++
			if err := w.service.Answer(context.Background(), h.cmd, "m1", h.loads[i%len(h.loads)], func([]byte) {}); err != nil {
				t.Fatalf("%s: %v", h.name, err)
			}
		})
		t.Logf("%s: %.0f allocations", h.name, n)
		if n > h.ceiling {
			t.Errorf("%s: %.0f allocations, at most %.0f", h.name, n, h.ceiling)
		}
	}
}

// BenchmarkAnswer is what a request costs without the network.
func BenchmarkAnswer(b *testing.B) {
	w, all := hotWorld(b)
	for _, h := range all {
		b.Run(h.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := w.service.Answer(context.Background(), h.cmd, "m1", h.loads[i%len(h.loads)],
					func([]byte) {}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
