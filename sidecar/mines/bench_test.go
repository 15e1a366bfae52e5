package mines_test

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkAnswer is what a request costs without the network: of a mine of ten functions, in a cachedir where the test's files are.
func BenchmarkAnswer(b *testing.B) {
	w := newWorld(b, options(b, "", 3008))
	data := dict{}
	for i := range 10 {
		data = append(data, fmt.Sprint("fun.", i), list{"10.0.0.1", "fe80::1", i})
	}
	for _, id := range everybody {
		if _, err := w.ask(load("_mine", id, "data", data)); err != nil {
			b.Fatal(err)
		}
	}
	sets := [][]byte{wire(b, load("_mine", "m1", "data", dict{"fun.3", 1})), wire(b, load("_mine", "m1", "data", dict{"fun.3", 2}))}
	for _, c := range []struct {
		name, cmd string
		loads     [][]byte
	}{
		{"mine", "_mine", sets},
		{"mine as it was", "_mine", sets[:1]},
		{"get one", "_mine_get", [][]byte{wire(b, load("_mine_get", "m1", "fun", "fun.1", "tgt", "m2"))}},
		{"get all seven", "_mine_get", [][]byte{wire(b, load("_mine_get", "m1", "fun", "fun.1", "tgt", "*"))}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := w.service.Answer(context.Background(), c.cmd, "m1", c.loads[i%len(c.loads)], func([]byte) {}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
