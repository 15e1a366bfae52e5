package wall

import (
	"strings"

	"saltclusterd/sidecar/saltwire"
)

// checkRevoke judges whether a minion gives up its own key, and no other: its id is a plain name.
func (w *Wall) checkRevoke(r *Request) finding {
	if !strings.ContainsAny(r.Peek.ID, "*?[,") {
		return finding{}
	}
	return finding{Identity, "id_is_no_plain_name", Verdict{Refused: true, Reply: replyFalse}}
}

// checkTops judges whom a minion wants to be told the classes of, by the ids in the configuration it sends along: a
// stock minion sends its own. A grain of that name is a site's business, as long as it is not another minion's id.
func (w *Wall) checkTops(r *Request) finding {
	another := finding{MasterTops, "classes_of_another_minion", Verdict{Refused: true, Reply: replyMap}}
	good := true
	grain := func(key []byte, value saltwire.Value) {
		if string(key) == "id" {
			good = good && w.mayBear(value, r.Peek.ID)
		}
	}
	err := saltwire.WalkData(r.Peek.Raw.Opts, func(key []byte, value saltwire.Value) {
		switch string(key) {
		case "id":
			id, ok := value.Text()
			good = good && ok && string(id) == r.Peek.ID
		case "grains":
			good = saltwire.WalkData(value, grain) == nil && good
		}
	})
	if r.Peek.Raw.Opts.Form() == saltwire.FormAbsent || err == nil && good {
		return finding{}
	}
	return another
}

// mineTargets judges by what a minion looks for others whose mine it wants. Their pillars are not its own: who may ask
// about a part of a value could ask for all of it.
func (w *Wall) mineTargets(r *Request) finding {
	for _, by := range [...]saltwire.Value{r.Peek.Raw.TgtType, r.Peek.Raw.ExprForm} {
		if b, ok := by.Text(); ok && string(b) == "pillar_pcre" {
			return finding{MineTargets, "pillar_of_others", Verdict{Refused: true, Reply: replyMap}}
		}
	}
	return finding{}
}
