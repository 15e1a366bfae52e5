package recovery

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/durable"
	"saltclusterd/sidecar/hlc"
)

// contactInterval is how often the note is written.
const contactInterval = 15 * time.Second

// ContactPath returns the path of the note.
func ContactPath(stateDir string) string { return filepath.Join(stateDir, "contact") }

// Contact notes on disk when this node last had everything that the cluster has decided. The age of the note limits how
// long the node serves without a majority, and tells an operator what a recovery can lose.
type Contact struct {
	StateDir string
	Limit    time.Duration // the option cluster_alone_limit; 0: none
	Logger   *slog.Logger
}

// Keep writes the note while this node is caught up with a majority, until ctx ends.
func (c *Contact) Keep(ctx context.Context, caughtUp func() bool) {
	for {
		if caughtUp() {
			text := time.Now().UTC().Format(time.RFC3339) + "\n"
			if err := durable.WriteFile(ContactPath(c.StateDir), []byte(text), 0o600); err != nil {
				c.Logger.Warn("last contact with the cluster not stored", "err", err)
			}
		}
		if !backoff.Sleep(ctx, contactInterval) {
			return
		}
	}
}

// Last reads the note. Without one it returns when this node became a member.
func (c *Contact) Last() (time.Time, error) {
	text, err := os.ReadFile(ContactPath(c.StateDir))
	if err == nil {
		if t, err := time.Parse(time.RFC3339, strings.TrimSpace(string(text))); err == nil {
			return t, nil
		}
	}
	info, err := os.Stat(membership.RecordPath(c.StateDir))
	if err != nil {
		return time.Time{}, fmt.Errorf("last contact with the cluster: %w", err)
	}
	return info.ModTime(), nil
}

// isRecent says whether the last contact is not older than the limit: seen by this process or, when that is zero, the
// noted one. Of seen the age is the longer one of passed, by the monotonic clock, which cannot be set but stands still
// while the host is suspended, and the difference of the host's clock. The age of a noted contact that lies in the
// future is not known: this host's clock was set back, and could be set back again.
func (c *Contact) isRecent(now, seen time.Time, passed time.Duration) bool {
	if c.Limit == 0 {
		return true
	}
	if !seen.IsZero() {
		return max(passed, now.Round(0).Sub(seen.Round(0))) < c.Limit
	}
	last, err := c.Last()
	if err != nil {
		c.Logger.Warn("this node does not serve alone", "err", err)
		return false
	}
	if last.Sub(now) > hlc.MaxAhead {
		c.Logger.Warn("this node does not serve alone: by this host's clock its last contact with the cluster is in the future",
			"ahead", last.Sub(now).Round(time.Second), "hint", "set this host's clock")
		return false
	}
	return now.Sub(last) < c.Limit
}
