package keydir

import (
	"time"

	"saltclusterd/consensus/state"
)

// badProposal is how long a proposal rests that consensus finds invalid or has no room for.
const badProposal = 30 * time.Second

const (
	// maxDoubt bounds how many proposals about one subject are remembered whose outcome is not known.
	maxDoubt = 8
	// doubtFor is for how long; longer than any request is on its way.
	doubtFor = 10 * time.Minute
)

// sent notes that proposals are on their way.
func (m *machine) sent(now time.Time, ps []proposal) {
	for s, fs := range m.doubt {
		if now.Sub(fs[len(fs)-1].at) > doubtFor {
			delete(m.doubt, s)
		}
	}
	for _, p := range ps {
		if p.extra {
			continue
		}
		m.flying[p.subject] = flight{p.want, p.rev, now}
		if p.subject.denied && p.want != (entry{}) {
			m.quiet(now)
			m.calm[p.subject.id] = now
		}
	}
}

// quiet forgets when denied keys were proposed once that does not matter any more.
func (m *machine) quiet(now time.Time) {
	if len(m.calm) < 1024 {
		return
	}
	for id, at := range m.calm {
		if now.Sub(at) > deniedEvery {
			delete(m.calm, id)
		}
	}
}

// answered takes the outcome of a proposal that was sent.
func (m *machine) answered(now time.Time, p proposal, r state.Result) {
	if p.extra {
		return
	}
	delete(m.flying, p.subject)
	switch r.Code {
	case state.OK:
		// Disk was like that when it was proposed: an edit made since then is an edit of this.
		m.agree(p.subject, based{p.want, r.Rev})
		delete(m.doubt, p.subject)
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

// failed notes that it is not known what became of a proposal. The view will tell.
func (m *machine) failed(now time.Time, p proposal) {
	if p.extra {
		return
	}
	if d := append(m.doubt[p.subject], m.flying[p.subject]); len(d) > maxDoubt {
		m.doubt[p.subject] = d[len(d)-maxDoubt:]
	} else {
		m.doubt[p.subject] = d
	}
	delete(m.flying, p.subject)
	m.later[p.subject] = now.Add(m.timing.Retry)
}

// wrote notes that a writing is on disk.
func (m *machine) wrote(w writing) {
	m.agree(w.subject, based{w.want, w.rev})
	delete(m.edits, w.subject)
}

// advance notes that everything up to rev is on disk.
func (m *machine) advance(rev uint64) {
	if rev > m.base.Seen && m.base.Stale == fresh {
		m.base.advance(rev)
		m.dirty = true
	}
}

// settle ends the staleness after a round over everything that left nothing open.
func (m *machine) settle(view state.View) {
	if m.base.Stale == fresh {
		return
	}
	m.base.Stale = fresh
	m.base.advance(view.Rev())
	m.dirty = true
}

// distrust makes the disk stale: it is not the one the base describes.
func (m *machine) distrust() {
	if m.base.Stale == fresh {
		m.base.Stale = joining
		m.dirty = true
	}
}

// command turns a proposal and the text it is about into what consensus understands.
func (m *machine) command(now time.Time, p proposal, text string) state.Command {
	audit := state.Audit{By: m.node, At: now.UnixMilli(), Cause: cause(p)}
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

func cause(p proposal) string {
	if p.why != "" {
		return p.why
	}
	return causeKeyFile
}
