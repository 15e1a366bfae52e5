package identity

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"sync"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/durable"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/signin"
)

// PathPins is where a member asks another one what minions have pinned.
const PathPins = "/v1/pins"

const (
	maxPinList = 128 << 20 // bytes of a list
	// maxForeign bounds the minions that are remembered for having pinned a key that is none of ours.
	maxForeign = 1024
)

// pin is what a minion has shown at its latest sign-in.
type pin struct {
	FP string    `json:"fp,omitempty"` // of the master key that it has pinned, or took; empty: of neither
	At time.Time `json:"at"`
}

// pinList is what one node knows.
type pinList struct {
	Change string         `json:"change"` // the new identity that it is about
	Pins   map[string]pin `json:"pins"`
}

// pins remembers what minions have pinned while the identity is changed. At other times it costs nothing, but for those who refuse us.
type pins struct {
	mu      sync.Mutex
	change  string
	seen    map[string]pin
	foreign map[string]time.Time
}

// about says which change is under way, empty: none, and reports whether that is news.
func (p *pins) about(change string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.change == change {
		return false
	}
	p.change, p.seen = change, map[string]pin{}
	return true
}

// recall takes what was known before, unless it is about another change or older than what is known now.
func (p *pins) recall(l pinList) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.Change != p.change || p.change == "" {
		return
	}
	p.seen = latestPins(p.change, []pinList{{p.change, p.seen}, l})
}

// note takes what a sign-in has shown; fp is the key's fingerprint. It reports whether that is news about one who refuses us.
func (p *pins) note(id, fp string, at time.Time) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.change != "" {
		p.seen[id] = pin{fp, at}
	}
	if fp != "" {
		delete(p.foreign, id)
		return false
	}
	if _, known := p.foreign[id]; known || len(p.foreign) >= maxForeign {
		return false
	}
	if p.foreign == nil {
		p.foreign = map[string]time.Time{}
	}
	p.foreign[id] = at
	return true
}

func (p *pins) list() pinList {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := pinList{Change: p.change, Pins: make(map[string]pin, len(p.seen))}
	for id, seen := range p.seen {
		out.Pins[id] = seen
	}
	return out
}

// NotePin notes what a sign-in that was answered here has shown (signin.Config.Pinned).
func (c *Change) NotePin(id, _ string, p signin.Pin) {
	fp := ""
	switch p {
	case signin.PinOurs, signin.PinNone: // who has none takes the one that it is shown
		fp = c.cfg.Fingerprint
	case signin.PinAnother:
		if agreed := c.cfg.Log.View().IdentityChange(); c.cfg.Fingerprint == agreed.FP {
			fp = agreed.Former
		} else {
			fp = agreed.FP
		}
	}
	if c.pins.note(id, fp, time.Now().UTC()) {
		c.cfg.Logger.Warn("minion has pinned another master key and will refuse us", "minion", id,
			"reason", "its minion_master.pub is not the cluster's")
	}
}

// A node lists what minions have pinned, as far as it has answered their sign-ins.
var pinsRPC = peerrpc.Endpoint[peerrpc.None, pinList]{Method: http.MethodGet, Path: PathPins, MaxAnswer: maxPinList}

// Handle routes the calls of other members to a node that answers sign-ins.
func (c *Change) Handle(mux *peerrpc.Mux) { mux.Handle(pinsRPC.Pattern(), pinsRPC.Handler(c.listPins)) }

func (c *Change) listPins(context.Context, node.ID, peerrpc.None) (pinList, error) {
	return c.pins.list(), nil
}

// askPins asks a node.
func (c *Change) askPins(ctx context.Context, id node.ID) (pinList, error) {
	if id == c.cfg.Self {
		return c.pins.list(), nil
	}
	return pinsRPC.Call(ctx, c.cfg.Client, id, peerrpc.None{})
}

func parsePins(text []byte) (list pinList, err error) {
	err = json.Unmarshal(text, &list)
	return list, err
}

// savePins keeps what is known for the process that takes over.
func (c *Change) savePins() {
	text, err := json.Marshal(c.pins.list())
	if err == nil {
		err = durable.WriteFile(c.cfg.PinsFile, text, 0o600)
	}
	if err != nil {
		c.cfg.Logger.Warn("what minions have pinned is not kept", "err", err)
	}
}

// recallPins takes what the process before knew. Without it, it is seen again.
func (c *Change) recallPins() {
	text, err := os.ReadFile(c.cfg.PinsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var list pinList
	if err == nil {
		list, err = parsePins(text)
	}
	if err != nil {
		c.cfg.Logger.Warn("what minions have pinned is not known from before", "err", err)
		return
	}
	c.pins.recall(list)
}

// latestPins puts together what nodes know of one change: of each minion what it has shown last.
func latestPins(change string, lists []pinList) map[string]pin {
	out := map[string]pin{}
	for _, l := range lists {
		if l.Change != change {
			continue
		}
		for id, p := range l.Pins {
			if had, ok := out[id]; !ok || p.At.After(had.At) {
				out[id] = p
			}
		}
	}
	return out
}
