package wall

import (
	"strings"
	"time"

	"saltclusterd/sidecar/saltwire"
)

// ignored is the verdict on a return: its sender hears what a stock master answers to one that it passes over. To say
// nothing would make a node that hands it on keep it for later.
var ignored = Verdict{Refused: true, Reply: replyNil}

// jobID judges the job id of a request, which masters make paths of, and keep: of one that is a list or a map no runner
// can list any jobs any more.
func (w *Wall) jobID(r *Request) finding {
	f := finding{JobIDs, "job_id_is_a_path", ignored}
	switch {
	case r.Peek.NoJID:
		f.reason = "job_id_is_no_text"
	case goodJobID(r.Peek.JID):
		return finding{}
	}
	if r.Peek.Cmd == "pub_ret" {
		f.then.Reply = replyRaised
	}
	return f
}

func goodJobID(jid string) bool {
	return jid != "." && jid != ".." && !strings.ContainsAny(jid, "/\\") && !isUnprintable(jid)
}

// returnID judges the id under which a return is filed: the sender's, or that of a resource that it manages, of which a
// master makes a path and an event. A job id with a slash in it would put another id, or any other text, where the
// sender's stands in the tag of that, so it is checked however job_ids is applied.
func (w *Wall) returnID(r *Request) finding {
	if f := w.jobID(r); f.reason != "" {
		return finding{ReturnIDs, f.reason, ignored}
	}
	raw := r.Peek.Raw.ResourceID
	if raw.Form() == saltwire.FormAbsent {
		if keptName(r.Peek.ID) {
			return finding{ReturnIDs, "name_of_the_job_cache", ignored}
		}
		return finding{}
	}
	id, ok := raw.Text()
	switch {
	case !ok, !goodResource(string(id)):
		return finding{ReturnIDs, "resource_id_is_a_path", ignored}
	case keptName(string(id)):
		return finding{ReturnIDs, "name_of_the_job_cache", ignored}
	case w.belongsToOther(string(id), r.Peek.ID):
		return finding{ReturnIDs, "return_of_another_minion", ignored}
	}
	return finding{}
}

// keptName says whether an id is a name under which job caches keep something else than returns, beside those of a job:
// a directory of that name would say of the whole job that none of its returns are to be kept.
func keptName(id string) bool { return id == "nocache" || id == "jid" || id == "endtime" }

// returnWhom judges whether a return, which is also an event, says whom its job is for, as the events of syndics do and
// as clients that wait for the job believe, or bears the mark of a peer.
func (w *Wall) returnWhom(r *Request) finding {
	var all found
	if r.Peek.Whom {
		all |= foundWhom
	}
	if r.Peek.Peer {
		all |= foundTag
	}
	f, mode := w.worstFinding(all)
	if mode != Off {
		f.then = ignored
	}
	return f
}

// goodResource says whether an id can be that of a resource, or of a minion below a syndic: the name of something below
// a directory.
func goodResource(id string) bool {
	return id != "" && len(id) <= 255 && id[0] != '.' && id[0] != '/' && !strings.ContainsAny(id, "\x00\n") &&
		!hasParentPart([]byte(id))
}

// belongsToOther says whether what is filed under an id is filed under, or below, that of a minion other than the
// sender.
func (w *Wall) belongsToOther(id, sender string) bool {
	first, _, below := strings.Cut(id, "/")
	return w.isOther(id, sender) || below && w.isOther(first, sender)
}

// maxResources is how many resources a minion may say that it manages, and how many grains of such it may bring: a
// master makes a file for the grains of each, looks through all of them whenever a minion registers any, and each
// master that knows resources does so.
const maxResources = 20_000

// checkResources judges the names of what a minion says it manages: masters make files of them.
func (w *Wall) checkResources(r *Request) finding {
	managed, goodNames := goodResources(r.Peek.Raw.Resources)
	grains, goodFiles := goodGrains(r.Peek.Raw.Grains)
	if !goodNames || !goodFiles {
		return finding{ReturnIDs, "resource_id_is_a_path", Verdict{Refused: true, Reply: replyMap}}
	}
	if max(managed, grains) > maxResources {
		return finding{Budget, "too_many_resources", Verdict{Refused: true, Reply: replyMap}}
	}
	return finding{}
}

// goodResources looks at lists of names, by the type of resource, and counts them. YAML makes numbers of some. In a
// value that is not a map a master finds no names.
func goodResources(byType saltwire.Value) (n int, good bool) {
	if byType.Form() != saltwire.FormMap {
		return 0, true
	}
	good = true
	err := saltwire.WalkMap(byType, func(_ []byte, names saltwire.Value) error {
		if names.Form() != saltwire.FormText && !names.Container() {
			return nil
		}
		return saltwire.WalkArray(names, func(name saltwire.Value) error {
			b, text := name.Text()
			good = good && !name.Container() && (!text || goodResource(string(b)))
			n++
			return nil
		})
	})
	return n, err == nil && good
}

// goodGrains looks at grains by type and name, which masters keep in a file of that name.
func goodGrains(grains saltwire.Value) (n int, good bool) {
	if grains.Form() != saltwire.FormMap {
		return 0, true
	}
	good = true
	err := saltwire.WalkMap(grains, func(name []byte, _ saltwire.Value) error {
		good = good && goodResource(string(name))
		n++
		return nil
	})
	return n, err == nil && good
}

// Job ids that do not name a job: minions' own jobs have them, and a master makes an id.
const (
	noJob   = "req"
	noCache = "nocache"
)

// queuedByMinion says whether a return may be that of a state which the minion's schedule or salt-call have queued: the
// minion has made its id then, and it bears no mark of a master (salt/modules/state.py:_check_queue).
func (w *Wall) queuedByMinion(p *saltwire.Peek) bool {
	if p.MasterID != "" || !strings.HasPrefix(p.Fun, "state.") || !saltwire.IsCutJID(p.JID) {
		return false
	}
	at, err := time.Parse("20060102150405", p.JID[:14])
	return err == nil && at.Before(w.cfg.Now().Add(queuedAhead))
}

// queuedAhead is by how much the clock of a minion may be ahead that makes such an id.
const queuedAhead = time.Minute

// returnJob judges whether a return's job was ever published. What a minion's own schedule has run bears a job id of
// its own.
func (w *Wall) returnJob(r *Request) finding {
	p := r.Peek
	if w.modes[ReturnJobs] == Off || p.JID == "" || p.JID == noJob || p.JID == noCache ||
		p.Raw.Schedule.Form() != saltwire.FormAbsent || w.queuedByMinion(p) {
		return finding{}
	}
	if w.cfg.Job(p.JID, p.MasterID) != NotPublished {
		return finding{}
	}
	return finding{ReturnJobs, "job_was_not_published", ignored}
}

// syndicReturn judges returns that one brings for others.
func (w *Wall) syndicReturn(r *Request) finding {
	p := r.Peek
	reason := ""
	var all found
	look := func(load []byte) {
		if reason == "" {
			reason = w.syndicLoad(load, p.ID, &all)
		}
	}
	if p.Loads == nil { // before syndics brought several at a time
		look(r.Plain)
	} else if err := saltwire.WalkArray(p.Loads, func(load []byte) error { look(load); return nil }); err != nil {
		reason = "syndic_return_malformed"
	}
	if reason != "" {
		return finding{ReturnIDs, reason, ignored}
	}
	if f, mode := w.worstFinding(all); mode != Off {
		f.then = ignored
		return f
	}
	// Returns for another node's master are that node's to judge.
	here := r.Relayed || p.Mixed || p.MasterID == "" || w.cfg.Own(p.MasterID)
	if here && !w.policy.Load().Syndics {
		return finding{SyndicReturns, "order_masters_is_off", ignored}
	}
	return finding{}
}

// syndicLoad says what is wrong with one load of a syndic; empty: nothing but what states say in it.
func (w *Wall) syndicLoad(load []byte, sender string, states *found) (reason string) {
	var fun, returns saltwire.Value
	note := func(bad bool, what string) {
		if bad && reason == "" {
			reason = what
		}
	}
	err := saltwire.WalkMap(load, func(key []byte, value saltwire.Value) error {
		switch string(key) {
		case "id":
			b, ok := value.Text()
			note(!ok || string(b) != sender, "syndic_return_of_another_syndic")
		case "jid":
			b, ok := value.Text()
			note(ok && !goodJobID(string(b)), "job_id_is_a_path")
			note(value.Container(), "job_id_is_no_text")
		case "return":
			returns = value
			note(!w.syndicMinions(value, sender), "return_of_another_minion")
		case "fun":
			fun = value
		}
		return nil
	})
	note(err != nil, "syndic_return_malformed")
	if reason == "" {
		*states |= w.syndicStates(returns, fun, sender)
	}
	return reason
}

// syndicMinions says whether a syndic may bring these returns, by minion: none of them is one that signs in here
// itself. A master takes the id and the job id of a return from within it, if they stand there, and one of 3008 that of
// a resource.
func (w *Wall) syndicMinions(returns saltwire.Value, sender string) bool {
	good := true
	err := saltwire.WalkMap(returns, func(minion []byte, item saltwire.Value) error {
		id := string(minion)
		good = good && goodResource(id) && !keptName(id) && !w.belongsToOther(id, sender)
		if !good || !item.Container() {
			return nil
		}
		return saltwire.WalkMap(item, func(key []byte, _ saltwire.Value) error {
			switch string(key) {
			case "id", "jid", "resource_id", "minions", "missing", "error", "__peer_id":
				good = false
			}
			return nil
		})
	})
	return err == nil && good
}
