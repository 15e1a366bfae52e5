package roots

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/fsync/content"
	"saltclusterd/gossip/node"
)

// Mode says what becomes of local edits.
type Mode string

// The modes. Revisions of others are applied in auto and manual.
const (
	ModeAuto   Mode = "auto"   // they are proposed when found
	ModeManual Mode = "manual" // Sync proposes them
	ModeOff    Mode = "off"    // nothing is replicated
)

// Path is where peers serve Handler, by POST.
const Path = "/v1/roots"

// Gate holds up what must not see half of a revision.
type Gate interface {
	// Hold returns when requests for files and pillars wait and those under way have ended, or a bound on time is reached.
	Hold(ctx context.Context) (release func(), err error)
}

// Slot is a slot and its directory on this node.
type Slot struct {
	Name SlotName
	Dir  string // absolute; a symlink is followed once, here
}

// Config is what a Store needs. Gate, AfterSwitch and Registerer may be nil.
type Config struct {
	Self     node.ID
	Slots    []Slot
	StateDir string
	UID, GID int // whose files they are; -1 leaves them as created
	Mode     Mode
	// MaxDeletePercent is the share of a slot's files that a revision may remove without being held; 0: 25. Ten files
	// may always be removed.
	MaxDeletePercent int
	Ignore           []string // patterns of names; nil: DefaultIgnore
	HistoryBytes     int64    // bound on displaced content, per slot; 0: 1 GiB

	Log   Log
	Peers content.Peers // Fetch posts to Path
	Gate  Gate
	From  func(ctx context.Context) (node.ID, bool) // who sends a request to the handler
	// Order tells which slots are other directories than the same slots of other members, and why that is so: they are
	// left alone. The first call may wait for the members' word. It may be nil.
	Order func(ctx context.Context) map[SlotName]string
	// AfterSwitch is called when slots have changed, with requests still held up.
	AfterSwitch func(slots []SlotName)

	Timing     Timing // zero fields: defaults
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

func (c Config) validate() error {
	switch {
	case c.Self == "" || c.StateDir == "":
		return errors.New("roots: node and state directory must be set")
	case c.Mode != ModeAuto && c.Mode != ModeManual && c.Mode != ModeOff:
		return fmt.Errorf("roots: mode %q", c.Mode)
	case c.Log == nil || c.Peers == nil || c.From == nil:
		return errors.New("roots: log and peers must be set")
	case c.MaxDeletePercent < 0 || c.MaxDeletePercent > 100:
		return fmt.Errorf("roots: %d percent of deletions", c.MaxDeletePercent)
	}
	seen := map[SlotName]bool{}
	for _, s := range c.Slots {
		if !s.Name.Valid() || seen[s.Name] {
			return fmt.Errorf("roots: bad slot %q", s.Name)
		}
		seen[s.Name] = true
	}
	return nil
}
