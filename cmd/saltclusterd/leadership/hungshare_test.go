package leadership

import (
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/router"
)

func TestHealthySuccessor(t *testing.T) {
	voters := []node.ID{"m0", "m1", "m2", "m3"}
	well := func(id node.ID) router.Node { return router.Node{ID: id, Alive: true, MasterUp: true} }
	hung := func(id node.ID) router.Node { return router.Node{ID: id, Alive: true} }
	drained := well("m2")
	drained.Draining = true
	for name, c := range map[string]struct {
		nodes []router.Node
		want  node.ID
	}{
		"not the one that failed": {[]router.Node{hung("m1"), well("m0"), well("m3")}, "m3"},
		"the first healthy one":   {[]router.Node{hung("m1"), well("m2"), well("m3")}, "m2"},
		"not a hung one":          {[]router.Node{hung("m1"), hung("m2"), well("m3")}, "m3"},
		"none":                    {[]router.Node{hung("m1"), hung("m2"), hung("m3")}, ""},
		"not itself":              {[]router.Node{well("m1"), hung("m2")}, ""},
		"not one that is down":    {[]router.Node{hung("m1"), {ID: "m2", MasterUp: true}, well("m3")}, "m3"},
		"not one that drains":     {[]router.Node{hung("m1"), drained, well("m3")}, "m3"},
		"not one without a vote":  {[]router.Node{hung("m1"), well("m4"), well("m3")}, "m3"},
	} {
		if got := healthySuccessor("m1", "m0", c.nodes, voters); got != c.want {
			t.Errorf("%s: %q instead of %q", name, got, c.want)
		}
	}
}
