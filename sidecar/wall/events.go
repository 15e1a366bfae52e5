package wall

import (
	"bytes"

	"saltclusterd/sidecar/saltwire"
)

// found is all that is wrong with an event.
type found uint8

const (
	foundOtherID found = 1 << iota
	foundOtherReturn
	foundWhom
	foundTag

	// foundAnything is what an event can be whose tag cannot be told: a master puts one together of what is in a list, or
	// calls a value that is not text by some name.
	foundAnything = foundOtherID | foundOtherReturn | foundWhom | foundTag
)

// eventFindings are what can be found, worst first.
var eventFindings = [...]struct {
	found found
	finding
}{
	{foundTag, tagOfMasters},
	{foundWhom, finding{rule: SyndicReturns, reason: "minions_of_a_job"}},
	{foundOtherReturn, finding{rule: ReturnIDs, reason: "job_event_of_another_minion"}},
	{foundOtherID, finding{rule: EventIDs, reason: "event_of_another_minion"}},
}

var tagOfMasters = finding{rule: EventTags, reason: "tag_of_masters"}

// worstFinding returns what counts of all that was found: the worst whose rule is enforced, or else the worst that is
// logged. A rule that was relaxed hides no other.
func (w *Wall) worstFinding(all found) (finding, Mode) {
	for _, mode := range [...]Mode{Enforce, Log} {
		for _, f := range eventFindings {
			if all&f.found != 0 && w.modes[f.rule] == mode {
				return f.finding, mode
			}
		}
	}
	return finding{}, Off
}

// checkEvent judges a _minion_event in either form. A master looks for the list first.
func (w *Wall) checkEvent(r *Request) finding {
	if r.Peek.Events != nil {
		return w.checkEvents(r)
	}
	if r.Peek.Tag == "" { // a master answers False to a load without a tag; nothing fires
		return finding{}
	}
	f, mode := w.worstFinding(w.checkTag(r.Peek.Tag, r.Peek.ID) | w.checkSingle(r))
	if mode != Off {
		f.then = Verdict{Refused: true, Reply: replyNil}
	}
	return f
}

// checkTag says what is wrong with the tag of an event of a minion.
func (w *Wall) checkTag(tag, sender string) (all found) {
	if masterTag(tag) {
		all |= foundTag
	}
	return all | w.tagIDs(tag, sender)
}

// tagIDs says whether a tag names another minion.
func (w *Wall) tagIDs(tag, sender string) (all found) {
	if id, ok := jobTagID(tag); ok && w.isOther(id, sender) {
		all |= foundOtherReturn
	}
	if id, ok := minionTagID(tag); ok && w.isOther(id, sender) {
		all |= foundOtherID
	}
	return all
}

// checkSingle says what is wrong with an event that is the load itself, beside its tag. Its id is the sender's.
func (w *Wall) checkSingle(r *Request) (all found) {
	if r.Peek.Peer {
		all |= foundTag
	}
	if r.Peek.Whom && waitedTag(r.Peek.Tag) {
		all |= foundWhom
	}
	if jobTag(r.Peek.Tag) && r.Peek.Raw.ResourceID.Form() != saltwire.FormAbsent &&
		!w.mayBear(r.Peek.Raw.ResourceID, r.Peek.ID) {
		all |= foundOtherReturn
	}
	return all
}

// under is what the tag of an event makes of what is in it.
type under struct {
	job    bool // a command line shows it, by the id in it
	minion bool // reactors go by the id
	waited bool // a command line may hear of it while it waits for a job, and of its minions
	syndic bool // a syndic hands it on, which tells of minions below it and of whom jobs are for
}

// checkBody says what is wrong with what a list has fired under a tag. Whatever the tag, a master adds the minions of a
// job that stand in it to its job cache.
func (w *Wall) checkBody(body saltwire.Value, u under, sender string) (all found) {
	if !u.job && !u.minion && !u.waited && !bytes.Contains(body, wordMinions) && !bytes.Contains(body, wordPeer) {
		return 0
	}
	minions, jid := false, false
	err := saltwire.WalkData(body, func(key []byte, value saltwire.Value) {
		switch string(key) {
		case "id", "resource_id":
			if u.job && !u.syndic && !w.mayBear(value, sender) {
				all |= foundOtherReturn
			}
			if u.job && u.syndic && w.namesOther(value, sender) {
				all |= foundOtherReturn
			}
			if u.minion && w.namesOther(value, sender) {
				all |= foundOtherID
			}
		case "minions":
			minions = true
		case "jid":
			jid = true
		case "missing", "error":
			if u.waited && !u.syndic {
				all |= foundWhom
			}
		case "__peer_id":
			all |= foundTag
		}
	})
	if err != nil {
		all |= foundTag
	}
	if minions && (jid || u.waited) && !u.syndic {
		all |= foundWhom
	}
	return all
}

var wordMinions, wordPeer = []byte("minions"), []byte("__peer_id")

// mayBear says whether what a minion tells of a job may have that id in it: a text that is not another minion's id.
func (w *Wall) mayBear(id saltwire.Value, sender string) bool {
	b, ok := id.Text()
	return ok && !w.belongsToOther(string(b), sender)
}

// namesOther says whether an id in what a minion tells is that of another one. A site's own beacon may put anything
// there.
func (w *Wall) namesOther(id saltwire.Value, sender string) bool {
	name, ok := id.Name()
	return ok && !id.Missing() && w.belongsToOther(name, sender)
}

// isOther says whether an id is that of a minion other than the sender.
func (w *Wall) isOther(id, sender string) bool { return id != sender && w.cfg.Accepted(id) }

// checkEvents judges a list of events. Bad events in it are cut out, as a stock master passes over them.
func (w *Wall) checkEvents(r *Request) finding {
	malformed, _ := w.worstFinding(foundAnything) // no Salt sends such a list
	malformed.then = Verdict{Refused: true, Reply: replyNil}
	pre, ok := readPretag(r.Peek.Raw.Pretag)
	if !ok {
		return malformed
	}
	var cuts []bool // of the events so far; nil: there is nothing to cut
	var cutFor, noted found
	n := 0
	err := saltwire.WalkEvents(r.Peek.Events, func(tag, body saltwire.Value) {
		all := w.checkListed(pre, tag, body, r)
		_, mode := w.worstFinding(all)
		switch mode {
		case Enforce:
			cutFor |= all
			if cuts == nil {
				cuts = make([]bool, n, n+16)
			}
		case Log:
			noted |= all
		}
		if cuts != nil {
			cuts = append(cuts, mode == Enforce)
		}
		n++
	})
	switch {
	case err != nil:
		return malformed
	case cuts != nil:
		f, _ := w.worstFinding(cutFor)
		f.then = cutEvents(r.Plain, cuts)
		return f
	}
	f, _ := w.worstFinding(noted)
	return f
}

// cutEvents is the verdict on a list of which some events must not be seen.
func cutEvents(plain []byte, where []bool) Verdict {
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

// checkListed judges one event of a list. The events that a syndic forwards from its own master have that master's
// tags: a master above that filters on its own gets them, because it fires them with the syndic's tag before theirs and
// notes which minions run a job. The minions below a syndic are none of those that sign in here
// (salt/minion.py:SyndicManager._forward_events).
func (w *Wall) checkListed(pre string, tag, body saltwire.Value, r *Request) found {
	text, ok := tag.Text()
	if !ok && tag.Form() != saltwire.FormAbsent {
		return foundAnything
	}
	name, whole := string(text), string(text)
	if pre != "" {
		whole = pre + "/" + name
	}
	u := under{
		job: jobTag(name) || jobTag(whole), minion: minionTag(name) || minionTag(whole), waited: waitedTag(whole),
		syndic: w.policy.Load().Syndics && pre == "syndic/"+r.Peek.ID,
	}
	if u.syndic {
		all := w.tagIDs(name, r.Peek.ID) | w.checkBody(body, u, r.Peek.ID)
		if isUnprintable(name) || masterTag(whole) || StockTag(name) && !w.policy.Load().Filters {
			all |= foundTag
		}
		return all
	}
	return w.checkTag(name, r.Peek.ID) | w.checkTag(whole, r.Peek.ID) | w.checkBody(body, u, r.Peek.ID)
}

// maxPretag bounds what stands before each tag of a list, in bytes. Each tag is looked at together with it, so without
// a bound few bytes more in a list would cost many more; a syndic puts its id there.
const maxPretag = 1024

// readPretag reads what stands before each tag of a list; false: no Salt sends that.
func readPretag(value saltwire.Value) (string, bool) {
	if value.Missing() {
		return "", true
	}
	name, ok := value.Name()
	return name, ok && len(name) <= maxPretag
}
