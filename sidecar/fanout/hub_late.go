package fanout

import (
	"slices"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/late"
	"saltclusterd/signal"
)

// rememberLate keeps a publication, made at one time and come here at another, for minions that are between two
// connections; false: it is none that may be given late.
func (h *Hub) rememberLate(jid string, origin node.ID, p Publication, at, came time.Time) bool {
	if jid == "" || at.IsZero() || h.cfg.NotLate() {
		return false
	}
	h.memory.Add(late.Publication{
		JID: jid, Plain: p.Plain, Topics: p.Topics, At: at, Came: came, Origin: string(origin),
	})
	return true
}

// keptFromOthers lists what may be given late and is not in the outbox: of other masters, and of this node's before its
// daemon was restarted.
func (h *Hub) keptFromOthers() []late.Publication {
	return slices.DeleteFunc(h.memory.Since(h.now().Add(-MaxAge)),
		func(p late.Publication) bool { return p.Origin == string(h.cfg.Self) })
}

// SignedIn notes that a process of a minion signs in here, before it is answered. token is what the process has shown.
// It must not be answered now if that cannot be told to the peers, who could give it a job that it was restarted by:
// false.
func (h *Hub) SignedIn(id string, token []byte) bool {
	now := h.now()
	s := late.Start{ID: id, Process: late.ProcessOf(token), At: now}
	if len(id) > maxMinionID || h.processes.Known(id, s.Process) {
		return true
	}
	told := !h.cutOff(now) && h.out.addRecord(kindStart, h.cfg.Clock.Last(), appendStart(nil, s, now), nil)
	if !told && !h.cfg.NotLate() {
		return false
	}
	h.processes.SignedIn(s)
	return true
}

// remoteStart implements sink.
func (h *Hub) remoteStart(s late.Start) { h.processes.SignedIn(s) }

const (
	// cutAfter is how long most peers may be silent before this node takes itself for cut off.
	cutAfter = 2 * time.Second
	// cutFor is for how long it then lets no new processes in: longer than others give what is late (MaxAge) after they
	// heard it last.
	cutFor = MaxAge + 30*time.Second
)

// cutOff reports whether this node was cut off from most others a short while ago. One that was never in touch with
// them is not.
func (h *Hub) cutOff(now time.Time) bool {
	if !h.cfg.Minority() {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var told []int64
	for id := range h.links {
		at := int64(0)
		if o := h.in.findOrigin(id); o != nil {
			at = o.told.Load()
		}
		told = append(told, at)
	}
	most := (len(told) + 1) / 2 // with this node they are a majority
	if most == 0 {
		return false
	}
	slices.Sort(told)
	last := told[len(told)-most]
	silent := time.Duration(h.beats.sinceStart(now) - last)
	return last > 0 && silent > cutAfter && silent < cutFor
}

// hasOldPeers reports whether a peer is of a version that does not tell what has started there. Late publications are
// then given at once.
func (h *Hub) hasOldPeers() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.beats.sinceStart(h.now())
	for id := range h.links {
		o := h.in.findOrigin(id)
		if o != nil && o.stamp.Load() == 0 && o.beatAt.Load() > 0 && time.Duration(now-o.beatAt.Load()) < silentAfter {
			return true
		}
	}
	return false
}

// isOverdue has o published as soon as that is safe.
func (h *Hub) isOverdue(o overdue) {
	h.overdueMu.Lock()
	if len(h.overdue) >= lateCount {
		h.overdue = slices.Delete(h.overdue, 0, 1)
		h.metrics.late.WithLabelValues("unknown").Inc()
	}
	h.overdue = append(h.overdue, o)
	h.overdueMu.Unlock()
	signal.Send(h.overdueGrew)
}

// stoodStill implements sink.
func (h *Hub) stoodStill() { h.memory.Clear() }

// startOver has all subscribers given what they may have missed.
func (h *Hub) startOver() { signal.Send(h.again) }
