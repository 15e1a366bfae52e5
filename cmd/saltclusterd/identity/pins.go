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

// PathPins is the path of the call that asks a member what minions have pinned.
const PathPins = "/v1/pins"

const (
	maxPinList = 128 << 20 // bytes of a list
	// maxForeign limits the minions with a foreign key that are remembered.
	maxForeign = 1024
)

// pin is the master key that a minion has pinned, by its latest sign-in.
type pin struct {
	FP string    `json:"fp,omitempty"` // fingerprint of the pinned key; empty: neither key of the change
	At time.Time `json:"at"`
}

// pinList is what one node has seen.
type pinList struct {
	Change string         `json:"change"` // fingerprint of the new identity
	Pins   map[string]pin `json:"pins"`
}

// pins records what minions have pinned while the identity is changed. At other times it records only the minions
// with a foreign key.
type pins struct {
	mu      sync.Mutex
	change  string // fingerprint of the new identity; empty: no change is under way
	seen    map[string]pin
	foreign map[string]time.Time
}

// setChange sets the change under way and reports whether it is another one than before.
func (p *pins) setChange(change string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.change == change {
		return false
	}
	p.change, p.seen = change, map[string]pin{}
	return true
}

// merge adds an earlier list. Lists of another change, and pins older than those that are recorded, are ignored.
func (p *pins) merge(l pinList) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.Change != p.change || p.change == "" {
		return
	}
	p.seen = latestPins(p.change, []pinList{{p.change, p.seen}, l})
}

// record records a sign-in; fp is the fingerprint of the pinned key, or empty for a foreign one. It reports whether
// the minion was not yet known to have a foreign key.
func (p *pins) record(id, fp string, at time.Time) (news bool) {
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

// RecordPin records what a sign-in that was answered here shows of the pinned key (signin.Config.Pinned).
func (c *Change) RecordPin(id, _ string, p signin.Pin) {
	fp := ""
	switch p {
	case signin.PinOurs, signin.PinNone: // a minion without a pin takes the key that it is shown
		fp = c.cfg.Fingerprint
	case signin.PinAnother:
		if agreed := c.cfg.Log.View().IdentityChange(); c.cfg.Fingerprint == agreed.FP {
			fp = agreed.Former
		} else {
			fp = agreed.FP
		}
	}
	if c.pins.record(id, fp, time.Now().UTC()) {
		c.cfg.Logger.Warn("minion has pinned another master key and will refuse the cluster", "minion", id,
			"reason", "its minion_master.pub is not the cluster's")
	}
}

// pinsRPC asks a node for the pins of the minions whose sign-ins it has answered.
var pinsRPC = peerrpc.Endpoint[peerrpc.None, pinList]{Method: http.MethodGet, Path: PathPins, MaxAnswer: maxPinList}

// Handle routes the calls of other members.
func (c *Change) Handle(mux *peerrpc.Mux) { mux.Handle(pinsRPC.Pattern(), pinsRPC.Handler(c.listPins)) }

func (c *Change) listPins(context.Context, node.ID, peerrpc.None) (pinList, error) {
	return c.pins.list(), nil
}

// askPins asks a node what minions have pinned.
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

// savePins stores the pins for the process that takes over.
func (c *Change) savePins() {
	text, err := json.Marshal(c.pins.list())
	if err == nil {
		err = durable.WriteFile(c.cfg.PinsFile, text, 0o600)
	}
	if err != nil {
		c.cfg.Logger.Warn("the keys that minions have stored are not recorded", "err", err)
	}
}

// loadPins adds the pins that the process before has stored. Without them, later sign-ins show them again.
func (c *Change) loadPins() {
	text, err := os.ReadFile(c.cfg.PinsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var list pinList
	if err == nil {
		list, err = parsePins(text)
	}
	if err != nil {
		c.cfg.Logger.Warn("earlier records of the keys that minions have stored cannot be read", "err", err)
		return
	}
	c.pins.merge(list)
}

// latestPins merges the lists of one change into the latest pin of each minion.
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
