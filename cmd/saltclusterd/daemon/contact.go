package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/durable"
)

// A node notes when it last knew what the cluster knows. How old that is bounds how long it may serve without a majority,
// and tells an operator what can be lost when the cluster is recovered from it.

// contactEvery is how often the note is written.
const contactEvery = 15 * time.Second

func contactPath(stateDir string) string { return filepath.Join(stateDir, "contact") }

// keepContact writes the note while this node is caught up with a majority.
func (m *member) keepContact(ctx context.Context) {
	for {
		if m.cons.CaughtUp() {
			text := time.Now().UTC().Format(time.RFC3339) + "\n"
			if err := durable.WriteFile(contactPath(m.d.cfg.Paths.StateDir), []byte(text), 0o600); err != nil {
				m.log.Warn("last contact with the cluster not noted", "err", err)
			}
		}
		if !backoff.Sleep(ctx, contactEvery) {
			return
		}
	}
}

// lastContact reads the note; without one it is when this node became a member.
func (d *Daemon) lastContact() (time.Time, error) {
	text, err := os.ReadFile(contactPath(d.cfg.Paths.StateDir))
	if err == nil {
		if t, err := time.Parse(time.RFC3339, strings.TrimSpace(string(text))); err == nil {
			return t, nil
		}
	}
	info, err := os.Stat(membership.RecordPath(d.cfg.Paths.StateDir))
	if err != nil {
		return time.Time{}, fmt.Errorf("last contact with the cluster: %w", err)
	}
	return info.ModTime(), nil
}

// mayBeAlone says whether this node may serve without a majority: the last contact, the noted one or a later one, is not
// older than cluster_alone_limit.
func (d *Daemon) mayBeAlone(now, later time.Time) bool {
	limit := d.cfg.Cluster.AloneLimit
	if limit == 0 || now.Sub(later) < limit {
		return true
	}
	last, err := d.lastContact()
	if err != nil {
		d.log.Warn("this node does not serve alone", "err", err)
		return false
	}
	return now.Sub(last) < limit
}
