package router

import "testing"

func TestOthersServe(t *testing.T) {
	for name, c := range map[string]struct {
		other Node
		want  bool
	}{
		"alive":    {Node{ID: "m2", Alive: true}, true},
		"dead":     {Node{ID: "m2"}, false},
		"same":     {Node{ID: "m1", Alive: true}, false},
		"draining": {Node{ID: "m2", Alive: true, Draining: true}, false},
	} {
		v := View{Nodes: []Node{{ID: "m1", Alive: true}, c.other}}
		if got := v.OthersServe("m1"); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
