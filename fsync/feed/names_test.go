package feed

import "testing"

func TestNames(t *testing.T) {
	woken := 0
	s := NewNames[string](2, func() { woken++ })
	s.Add("a", "a")
	s.Add()
	s.Add("b", "c")
	if woken != 2 || s.Len() != 2 || !s.Has("b") || s.Has("c") {
		t.Errorf("woken %d, %d names", woken, s.Len())
	}
	if names, whole := s.Take(1); whole || len(names) != 1 {
		t.Errorf("%v %v", names, whole)
	}
	if names, whole := s.Take(5); !whole || len(names) != 1 || s.Len() != 0 {
		t.Errorf("%v %v", names, whole)
	}
}
