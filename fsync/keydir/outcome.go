package keydir

import (
	"time"

	"saltclusterd/consensus/state"
)

// badProposal is how long a proposal rests that consensus finds invalid or has no room for.
const badProposal = 30 * time.Second

const (
	// maxUncertain bounds how many proposals about one subject are remembered whose outcome is not known.
	maxUncertain = 8
	// uncertainFor is for how long; longer than any request is on its way.
	uncertainFor = 10 * time.Minute
)

// noteSent notes that proposals are on their way.
func (m *machine) noteSent(now time.Time, ps []proposal) {
	for s, fs := range m.uncertain {
		if now.Sub(fs[len(fs)-1].at) > uncertainFor {
			delete(m.uncertain, s)
		}
	}
	for _, p := range ps {
		if p.extra {
			continue
		}
		m.flying[p.subject] = flight{p.want, p.rev, now}
		if p.subject.denied && p.want != (entry{}) {
			m.forgetQuiet(now)
			m.lastDenied[p.subject.id] = now
		}
	}
}

// forgetQuiet forgets when denied keys were proposed once that does not matter any more.
func (m *machine) forgetQuiet(now time.Time) {
	if len(m.lastDenied) < 1024 {
		return
	}
	for id, at := range m.lastDenied {
		if now.Sub(at) > deniedEvery {
			delete(m.lastDenied, id)
		}
	}
}

// noteAnswered takes the outcome of a proposal that was sent.
func (m *machine) noteAnswered(now time.Time, p proposal, r state.Result) {
	if p.extra {
		return
	}
	delete(m.flying, p.subject)
	switch r.Code {
	case state.OK:
		// Disk was like that when it was proposed: an edit made since then is an edit of this.
		m.noteAgreed(p.subject, based{p.want, r.Rev})
		delete(m.uncertain, p.subject)
		m.ahead[p.subject] = r.Rev
	case state.Conflict:
		m.ahead[p.subject] = r.Rev
		m.later[p.subject] = now.Add(m.timing.Settle)
	case state.NotFound:
		m.later[p.subject] = now.Add(m.timing.Settle)
	case state.Invalid, state.LimitReached:
		m.later[p.subject] = now.Add(badProposal)
	default:
		m.later[p.subject] = now.Add(m.timing.Retry)
	}
}

// noteFailed notes that it is not known what became of a proposal. The view will tell.
func (m *machine) noteFailed(now time.Time, p proposal) {
	if p.extra {
		return
	}
	if d := append(m.uncertain[p.subject], m.flying[p.subject]); len(d) > maxUncertain {
		m.uncertain[p.subject] = d[len(d)-maxUncertain:]
	} else {
		m.uncertain[p.subject] = d
	}
	delete(m.flying, p.subject)
	m.later[p.subject] = now.Add(m.timing.Retry)
}

// noteWritten notes that a writing is on disk.
func (m *machine) noteWritten(w writing) {
	m.noteAgreed(w.subject, based{w.want, w.rev})
	delete(m.edits, w.subject)
}

// advanceTo notes that everything up to rev is on disk.
func (m *machine) advanceTo(rev uint64) {
	if rev > m.base.Seen && m.base.Stale == fresh {
		m.base.advanceTo(rev)
		m.dirty = true
	}
}

// endStaleness ends the staleness after a round over everything that left nothing open.
func (m *machine) endStaleness(view state.View) {
	if m.base.Stale == fresh {
		return
	}
	m.base.Stale = fresh
	m.base.advanceTo(view.Rev())
	m.dirty = true
}

// markStale makes the disk stale: it is not the one the base describes.
func (m *machine) markStale() {
	if m.base.Stale == fresh {
		m.base.Stale = joining
		m.dirty = true
	}
}

// buildCommand turns a proposal and the text it is about into what consensus understands.
func (m *machine) buildCommand(now time.Time, p proposal, text string) state.Command {
	audit := state.Audit{By: m.node, At: now.UnixMilli(), Cause: causeOf(p)}
	switch {
	case !p.subject.denied:
		return state.KeySet{ID: p.subject.id, State: p.want.State, Pub: text, BaseRev: p.rev, SeenRev: p.seen, Audit: audit}
	case p.want == entry{}:
		return state.DeniedClear{ID: p.subject.id, Pub: p.clear, Audit: audit}
	}
	return state.DeniedSet{ID: p.subject.id, Pub: text, Audit: audit}
}

// causeKeyFile is the audit's cause of what was done in the directories.
const causeKeyFile = "key file"

func causeOf(p proposal) string {
	if p.why != "" {
		return p.why
	}
	return causeKeyFile
}
