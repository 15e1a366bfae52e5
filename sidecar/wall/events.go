package wall

import (
	"bytes"

	"saltclusterd/sidecar/saltwire"
)

// What is found in events, worst first.
const (
	foundNothing = iota
	foundOtherID
	foundOtherReturn
	foundWhom
	foundTag
)

var eventFindings = [...]finding{
	foundOtherID:     {rule: EventIDs, reason: "event_of_another_minion"},
	foundOtherReturn: {rule: ReturnIDs, reason: "job_event_of_another_minion"},
	foundWhom:        {rule: SyndicReturns, reason: "minions_of_a_job"},
	foundTag:         {rule: EventTags, reason: "tag_of_masters"},
}

// event judges a _minion_event in either form. A master looks for the list first.
func (w *Wall) event(r *Request) finding {
	if r.Peek.Events != nil {
		return w.events(r)
	}
	var f finding
	switch kind := max(w.tag(r.Peek.Tag, r.Peek.ID), w.single(r)); {
	case r.Peek.Tag == "": // a master answers False to a load without a tag; nothing fires
		return finding{}
	case kind == foundNothing, w.modes[eventFindings[kind].rule] == Off:
		return finding{}
	default:
		f = eventFindings[kind]
	}
	f.then = Verdict{Refused: true, Reply: replyNil}
	return f
}

// tag says what is wrong with the tag of an event of a minion.
func (w *Wall) tag(tag, sender string) int {
	if masterTag(tag) {
		return foundTag
	}
	if id, ok := jobTagID(tag); ok && w.another(id, sender) {
		return foundOtherReturn
	}
	if id, ok := minionTagID(tag); ok && w.another(id, sender) {
		return foundOtherID
	}
	return foundNothing
}

// single says what is wrong with an event that is the load itself, beside its tag. Its id is the sender's.
func (w *Wall) single(r *Request) int {
	switch {
	case r.Peek.Peer:
		return foundTag
	case !jobTag(r.Peek.Tag):
		return foundNothing
	case r.Peek.Whom:
		return foundWhom
	case r.Peek.Raw.ResourceID != nil && !w.mayBear(r.Peek.Raw.ResourceID, r.Peek.ID):
		return foundOtherReturn
	}
	return foundNothing
}

// body says what is wrong with what a list has fired under a tag. Under that of a job it is what a command line shows, by the id in it, and
// under that of a minion reactors go by the id. Whatever the tag, a master adds the minions of a job that stand in it to its job cache.
func (w *Wall) body(body []byte, ofJob, ofMinion bool, sender string) int {
	if !ofJob && !ofMinion && !bytes.Contains(body, wordMinions) && !bytes.Contains(body, wordPeer) {
		return foundNothing
	}
	kind, minions, jid := foundNothing, false, false
	err := saltwire.WalkData(body, func(key, value []byte) {
		switch string(key) {
		case "id", "resource_id":
			switch {
			case ofJob && !w.mayBear(value, sender):
				kind = max(kind, foundOtherReturn)
			case ofMinion && !w.mayBear(value, sender) && !saltwire.IsContainer(value):
				kind = max(kind, foundOtherID)
			}
		case "minions":
			minions = true
		case "jid":
			jid = true
		case "missing", "error":
			if ofJob {
				kind = max(kind, foundWhom)
			}
		case "__peer_id":
			kind = foundTag
		}
	})
	switch {
	case err != nil:
		return foundTag
	case minions && (jid || ofJob):
		return max(kind, foundWhom)
	}
	return kind
}

var wordMinions, wordPeer = []byte("minions"), []byte("__peer_id")

// mayBear says whether what a minion tells of a job may have that id in it: a text that is no other minion's.
func (w *Wall) mayBear(id []byte, sender string) bool {
	b, ok := saltwire.Bytes(id)
	return ok && !w.anothers(string(b), sender)
}

// another says whether an id is that of a minion other than the sender.
func (w *Wall) another(id, sender string) bool { return id != sender && w.cfg.Accepted(id) }

// events judges a list of events. What is wrong in it is cut out, as a stock master passes over it.
func (w *Wall) events(r *Request) finding {
	pre, ok := pretag(r.Peek.Raw.Pretag)
	if !ok {
		f := eventFindings[foundTag]
		f.then = Verdict{Refused: true, Reply: replyNil}
		return f
	}
	var cuts []bool // of the events so far; nil: there is nothing to cut
	worst, n := [...]int{Enforce: foundNothing, Log: foundNothing, Off: foundNothing}, 0
	err := saltwire.WalkEvents(r.Peek.Events, func(tag, body []byte) {
		kind := w.listed(pre, tag, body, r)
		mode := Off
		if kind != foundNothing {
			mode = w.modes[eventFindings[kind].rule]
			worst[mode] = max(worst[mode], kind)
		}
		if mode == Enforce && cuts == nil {
			cuts = make([]bool, n, n+16)
		}
		if cuts != nil {
			cuts = append(cuts, mode == Enforce)
		}
		n++
	})
	switch {
	case err != nil: // no Salt sends such a list
		f := eventFindings[foundTag]
		f.then = Verdict{Refused: true, Reply: replyNil}
		return f
	case worst[Enforce] != foundNothing:
		f := eventFindings[worst[Enforce]]
		f.then = cut(r.Plain, cuts)
		return f
	default:
		return eventFindings[worst[Log]]
	}
}

// cut is the verdict on a list of which some events must not be seen.
func cut(plain []byte, where []bool) Verdict {
	kept := 0
	for _, out := range where {
		if !out {
			kept++
		}
	}
	if kept == 0 {
		return Verdict{Refused: true, Reply: replyNil}
	}
	rest, err := saltwire.PickEvents(plain, func(i int) bool { return !where[i] })
	if err != nil {
		return Verdict{Refused: true, Reply: replyNil}
	}
	return Verdict{Plain: rest}
}

// listed judges one event of a list. What a syndic hands on of its own master is that master's tags: a master above that filters
// by itself gets them, for it fires them with the syndic's tag before theirs and notes which minions run a job.
func (w *Wall) listed(pre string, tag, body []byte, r *Request) int {
	name := string(tag)
	if pre != "" && w.policy.Load().Syndics {
		switch {
		case unprintable(name), masterTag(pre + "/" + name):
			return foundTag
		case StockTag(name) && !w.policy.Load().Filters:
			return foundTag
		}
		return foundNothing
	}
	kind, ofJob, ofMinion := w.tag(name, r.Peek.ID), jobTag(name), minionTag(name)
	if pre != "" {
		name = pre + "/" + name
		kind, ofJob, ofMinion = max(kind, w.tag(name, r.Peek.ID)), ofJob || jobTag(name), ofMinion || minionTag(name)
	}
	return max(kind, w.body(body, ofJob, ofMinion, r.Peek.ID))
}

// pretag reads what stands before each tag of a list; false: no Salt sends that.
func pretag(value []byte) (string, bool) {
	if value == nil || saltwire.IsNil(value) {
		return "", true
	}
	b, ok := saltwire.Bytes(value)
	return string(b), ok
}
