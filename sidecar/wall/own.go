package wall

import (
	"strings"

	"saltclusterd/sidecar/saltwire"
)

// revoke judges whether a minion gives up its own key: masters take its id for a glob, or for several with commas between them.
func (w *Wall) revoke(r *Request) finding {
	if !strings.ContainsAny(r.Peek.ID, "*?[,") {
		return finding{}
	}
	return finding{Identity, "id_is_a_pattern", Verdict{Refused: true, Reply: replyFalse}}
}

// tops judges whom a minion wants to be told the classes of: masters look at the configuration it shows, and not at who asks.
func (w *Wall) tops(r *Request) finding {
	another := finding{MasterTops, "classes_of_another_minion", Verdict{Refused: true, Reply: replyMap}}
	good := true
	own := func(key, value []byte) {
		if string(key) == "id" {
			good = good && w.mayBear(value, r.Peek.ID)
		}
	}
	err := saltwire.WalkData(r.Peek.Raw.Opts, func(key, value []byte) {
		own(key, value)
		if string(key) == "grains" {
			good = saltwire.WalkData(value, own) == nil && good
		}
	})
	if r.Peek.Raw.Opts == nil || err == nil && good {
		return finding{}
	}
	return another
}
