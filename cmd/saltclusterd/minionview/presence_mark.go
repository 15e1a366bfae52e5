package minionview

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"saltclusterd/durable"
	"saltclusterd/sidecar/presence"
)

const (
	presenceFile = "presence.json"
	// maxMarkAge is the age up to which events fired before a restart count, as with a stock master (salt/master.py
	// Maintenance).
	maxMarkAge = time.Hour
)

// storedMark is what a node keeps on disk of the latest events.
type storedMark struct {
	At   time.Time     `json:"at"`
	Told presence.Mark `json:"told"`
}

func (p *Presence) markPath() string { return filepath.Join(p.cfg.StateDir, presenceFile) }

// storeMark writes down the latest mark. The caller must not hold mu: the disk takes its time.
func (p *Presence) storeMark() {
	p.storing.Lock() // so that no older mark replaces a newer one
	defer p.storing.Unlock()
	p.writeMark(p.latestMark())
}

// writeMark writes down what the latest events said. Without it all minions would be new after a restart.
func (p *Presence) writeMark(mark presence.Mark) {
	text, err := json.Marshal(storedMark{At: time.Now().UTC(), Told: mark})
	if err == nil {
		err = durable.WriteFile(p.markPath(), append(text, '\n'), 0o600)
	}
	if err != nil {
		p.cfg.Logger.Warn("presence of minions not stored", "err", err)
	}
}

// readMark returns what writeMark has written, or the zero Mark.
func (p *Presence) readMark() presence.Mark {
	text, err := os.ReadFile(p.markPath())
	if errors.Is(err, fs.ErrNotExist) {
		return presence.Mark{}
	}
	var m storedMark
	if err == nil {
		m, err = parseMark(text)
	}
	if err != nil {
		p.cfg.Logger.Warn("presence of minions not read", "path", p.markPath(), "err", err)
		return presence.Mark{}
	}
	if time.Since(m.At) > maxMarkAge {
		return presence.Mark{}
	}
	return m.Told
}

func parseMark(text []byte) (m storedMark, err error) {
	err = json.Unmarshal(text, &m)
	return m, err
}
