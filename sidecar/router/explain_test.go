package router

import (
	"fmt"
	"testing"
)

// TestExplainEvent: what is said is what is decided.
func TestExplainEvent(t *testing.T) {
	v := withRules(t, view(), "m3")
	for tag, want := range map[string]string{
		"other":       "owner  ",
		"my/all":      "all my/all ",
		"my/x":        "owner my/* ",
		"my/leader/a": "leader my/leader/[ab] ",
		"my/origin/1": "origin my/origin/* ",
	} {
		x := v.ExplainEvent("web1", tag)
		if got := fmt.Sprintf("%s %s %s", x.Route, x.Rule.Tag, x.JID); got != want {
			t.Errorf("%s: %q, want %q", tag, got, want)
		}
		switch {
		case x.Route == "all" && len(x.Nodes) != 3, x.Route != "all" && len(x.Nodes) != 1:
			t.Errorf("%s fires on %v", tag, x.Nodes)
		case x.Route == "leader" && x.Nodes[0] != "m3", x.Route == "origin" && x.Nodes[0] != v.Self:
			t.Errorf("%s fires on %v", tag, x.Nodes)
		case x.Route == "owner" && x.Nodes[0] != v.rankUsable("web1")[0]:
			t.Errorf("%s fires on %v, the owner is %v", tag, x.Nodes, v.rankUsable("web1"))
		}
	}
	if x := (View{}).ExplainEvent("web1", "t"); len(x.Nodes) != 0 {
		t.Errorf("nobody is there: %+v", x)
	}
}
