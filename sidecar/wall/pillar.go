package wall

import (
	"slices"

	"saltclusterd/sidecar/saltwire"
)

// pillarExt judges the on-demand external pillars a minion asks for. A master leaves out those it does not know by
// name, and so does this: the load proceeds without any, unless every one is allowed.
func (w *Wall) pillarExt(r *Request) finding {
	ext := r.Peek.Raw.Ext
	if ext.Missing() {
		return finding{}
	}
	good := true
	err := saltwire.WalkMap(ext, func(key []byte, _ saltwire.Value) error {
		good = good && slices.ContainsFunc(w.policy.Load().OnDemand, func(name string) bool { return name == string(key) })
		return nil
	})
	if err == nil && good {
		return finding{}
	}
	rest, err := saltwire.CutField(r.Plain, "ext")
	if err != nil {
		return finding{PillarExt, "on_demand_pillar", Verdict{Refused: true, BadLoad: true}}
	}
	return finding{PillarExt, "on_demand_pillar", Verdict{Plain: rest}}
}
