package wall

import (
	"bytes"
	"slices"

	"saltclusterd/sidecar/saltwire"
)

// A master fires an event for each state that failed, with what the state says of itself, under a tag that it makes of
// the state's name (salt/utils/event.py:fire_ret_load). A minion may say of its states what it likes, so these are
// events of the minion like others.

// stateRun says whether a master does so for a function.
func stateRun(fun saltwire.Value) bool {
	b, ok := fun.Text()
	return ok && (string(b) == "state.sls" || string(b) == "state.highstate")
}

// partsOfName part the name of a state (salt/state.py:_gen_tag); the first and the last one are in the tag.
var partsOfName = []byte("_|-")

// returnStates judges the states of a return.
func (w *Wall) returnStates(r *Request) finding {
	raw := &r.Peek.Raw
	f, mode := w.worstFinding(w.checkStates(raw.Fun, raw.Retcode, raw.Return, r.Peek.ID))
	if mode != Off {
		f.then = ignored
	}
	return f
}

// checkStates says what is wrong with the events that a master fires for a return. Of a job of several functions the
// codes and the returns are lists, or go by the functions' names.
func (w *Wall) checkStates(fun, retcode, returned saltwire.Value, sender string) (all found) {
	if !retcode.True() {
		return 0
	}
	if stateRun(fun) {
		return w.checkFailed(returned, sender)
	}
	if fun.Form() != saltwire.FormList {
		return 0
	}
	var runs []bool // which of the functions run states
	names := map[string]bool{}
	err := saltwire.WalkArray(fun, func(one saltwire.Value) error {
		run := stateRun(one)
		if runs = append(runs, run); run {
			name, _ := one.Text()
			names[string(name)] = true
		}
		return nil
	})
	if err != nil {
		return foundAnything
	}
	if len(names) == 0 {
		return 0
	}
	return w.failedOf(returned, runs, names, sender)
}

// failedOf is failed for those of several functions that run states, in whichever way their returns are told apart. It
// looks at each return once: a minion may name as many functions as it likes.
func (w *Wall) failedOf(returned saltwire.Value, runs []bool, names map[string]bool, sender string) (all found) {
	var err error
	switch returned.Form() {
	case saltwire.FormList:
		n := 0
		err = saltwire.WalkArray(returned, func(one saltwire.Value) error {
			if n < len(runs) && runs[n] {
				all |= w.checkFailed(one, sender)
			}
			n++
			return nil
		})
	case saltwire.FormMap:
		err = saltwire.WalkData(returned, func(key []byte, one saltwire.Value) {
			if names[string(key)] {
				all |= w.checkFailed(one, sender)
			}
		})
	}
	if err != nil {
		all |= foundAnything
	}
	return all
}

// checkFailed says what is wrong with the states that failed.
func (w *Wall) checkFailed(states saltwire.Value, sender string) (all found) {
	err := saltwire.WalkData(states, func(name []byte, state saltwire.Value) {
		first, _, _ := bytes.Cut(name, partsOfName)
		last := name
		if at := bytes.LastIndex(name, partsOfName); at >= 0 {
			last = name[at+len(partsOfName):]
		}
		if isHarmlessPart(first) && isHarmlessPart(last) && !containsAny(state, wordMinions, wordMissing, wordPeer) {
			return
		}
		failed, whom := failedState(state)
		if !failed {
			return
		}
		if whom { // a master fires it once more, as one of the job's
			all |= foundWhom
		}
		tag := string(first) + "." + string(last)
		u := under{job: jobTag(tag), minion: minionTag(tag), waited: waitedTag(tag)}
		all |= w.checkTag(tag, sender) | w.checkBody(state, u, sender)
	})
	if err != nil {
		all |= foundAnything
	}
	return all
}

// isHarmlessPart says whether nothing that such a part of a tag is part of can be a master's or be about a minion:
// those have slashes.
func isHarmlessPart(part []byte) bool {
	for _, c := range part {
		if c == '/' || c < ' ' {
			return false
		}
	}
	return true
}

var wordMissing = []byte("missing")

func containsAny(b []byte, words ...[]byte) bool {
	return slices.ContainsFunc(words, func(word []byte) bool { return bytes.Contains(b, word) })
}

// failedState says whether a state says of itself that it has failed, and whether it says whom a job is for. An error
// does not show that: modules of a site may have one.
func failedState(state saltwire.Value) (failed, whom bool) {
	_ = saltwire.WalkData(state, func(key []byte, value saltwire.Value) {
		switch string(key) {
		case "result":
			b, ok := saltwire.Bool(value)
			failed = ok && !b
		case "minions", "missing":
			whom = true
		}
	})
	return failed, whom
}

// syndicStates says the same of the returns that a syndic brings. The function is that of the job, or stands in the
// return.
func (w *Wall) syndicStates(returns, fun saltwire.Value, sender string) (all found) {
	err := saltwire.WalkData(returns, func(_ []byte, item saltwire.Value) {
		var own, retcode, returned saltwire.Value
		err := saltwire.WalkData(item, func(key []byte, value saltwire.Value) {
			switch string(key) {
			case "fun":
				own = value
			case "retcode":
				retcode = value
			case "return":
				returned = value
			}
		})
		if fun.Form() != saltwire.FormAbsent {
			own = fun
		}
		if err != nil {
			all |= foundAnything
		}
		all |= w.checkStates(own, retcode, returned, sender)
	})
	if err != nil {
		all |= foundAnything
	}
	return all
}
