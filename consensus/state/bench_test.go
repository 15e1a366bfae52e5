package state

import (
	"fmt"
	"io"
	"testing"
)

func large(b *testing.B, n int) *State {
	s := born(b)
	for i := range n {
		s.ApplyCommands(KeySet{ID: fmt.Sprintf("minion%06d", i), State: KeyAccepted, Pub: testFP('p')})
	}
	return s
}

func BenchmarkApply(b *testing.B) {
	s := large(b, 10_000)
	b.ReportAllocs()
	for i := range b.N {
		id := fmt.Sprintf("minion%06d", i%10_000)
		s.ApplyCommands(KeySet{ID: id, State: KeyAccepted, Pub: fmt.Sprint(i), BaseRev: s.View().KeyRev(id)})
	}
}

func BenchmarkKey(b *testing.B) {
	s := large(b, 10_000)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, ok := s.View().Key("minion004711"); !ok {
				b.Error("not there")
			}
		}
	})
}

func BenchmarkSnapshot(b *testing.B) {
	v := large(b, 10_000).View()
	b.ReportAllocs()
	for range b.N {
		if err := v.WriteSnapshot(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
