package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/durable"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
)

// A node that was removed from its cluster must know it, whether it ran meanwhile or not, and must not come back by itself.
// It learns it from the log when that still reached it, and otherwise by asking: whom no leader calls, and who sees members
// that do not answer, asks what the roster says of him (peer.AskStanding). Somebody who is merely behind cannot remove
// anyone: what counts is a roster newer than what this node knows, or a later generation of the cluster.

const (
	// standingEvery is how often a node without a leader asks.
	standingEvery = time.Second
	// standingRarely is how often it asks members that it does not see while it has a leader.
	standingRarely = 10 * time.Second
)

// removal is what a node remembers of having been removed; it keeps it from joining by itself.
type removal struct {
	Version    int       `json:"version"`
	ClusterID  string    `json:"cluster_id"`
	UUID       string    `json:"uuid"`
	Generation uint64    `json:"generation,omitempty"`
	At         time.Time `json:"at"`
	Reason     string    `json:"reason"`
}

const removalVersion = 1

// readRemoval returns nil when this node was not removed, or has joined again.
func readRemoval(stateDir string) (*removal, error) {
	text, err := os.ReadFile(membership.RemovalPath(stateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var r removal
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", membership.RemovalPath(stateDir), err)
	}
	return &r, nil
}

// sentence tells an operator.
func (r *removal) sentence() string {
	return fmt.Sprintf("%s (cluster %s, %s)", r.Reason, r.ClusterID, r.At.UTC().Format("2006-01-02 15:04:05Z"))
}

const rejoinHint = "its minions are served by the others; saltclusterctl join PEER takes this node in again, " +
	"otherwise stop saltclusterd and the salt-master here"

// forget ends the membership on disk. The log is put aside, not deleted: it is all there is if the others are gone, too.
func (d *Daemon) forget(reason string) error {
	dir := d.cfg.Paths.StateDir
	m, err := membership.ReadRecord(dir)
	if err != nil || m == nil {
		return err
	}
	text, err := json.MarshalIndent(removal{removalVersion, m.ClusterID, m.UUID, m.Generation, time.Now().UTC(), reason}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode removal: %w", err)
	}
	if err := durable.WriteFile(membership.RemovalPath(dir), append(text, '\n'), 0o600); err != nil {
		return err
	}
	if err := errors.Join(os.Remove(membership.RecordPath(dir)), durable.SyncDir(dir)); err != nil {
		return fmt.Errorf("end the membership: %w", err)
	}
	if err := membership.PutAside(d.cfg.Paths.StateDir); err != nil {
		return err
	}
	d.mu.Lock()
	d.joined = make(chan struct{})
	d.mu.Unlock()
	return nil
}

// standing answers peers that ask what the roster says of them (peer.Config.Standing).
func (m *member) standing(id node.ID, fp node.Fingerprint) peer.Standing {
	e, ok := m.roster.Lookup(id)
	return peer.Standing{
		Member: ok && e.Fingerprint == fp, Rev: m.roster.Rev(), Generation: m.generation(),
	}
}

// generation of the cluster as this node knows it, also before consensus has told it.
func (m *member) generation() uint64 { return max(m.seed.Generation, m.cons.View().Generation()) }

// outdated says whether an answer proves that the node which got it, knowing rev and generation, is no member any more.
func outdated(s peer.Standing, rev, generation uint64) bool {
	return !s.Member && (s.Generation > generation || s.Generation == generation && s.Rev > rev)
}

// watchStanding ends the membership when this node was removed.
func (m *member) watchStanding(ctx context.Context) {
	lately := time.Now()
	for backoff.Sleep(ctx, standingEvery) {
		st := m.cons.Status()
		if m.cons.Detached() {
			m.leave("this node was removed from the cluster")
			return
		}
		if st.HasQuorum && time.Since(lately) < standingRarely {
			continue
		}
		lately = time.Now()
		if reason := m.askStanding(ctx, st.HasQuorum); reason != "" && ctx.Err() == nil {
			m.leave(reason)
			return
		}
	}
}

// askStanding asks the members, those only that are not seen if others are; it returns why this node is none, or "".
func (m *member) askStanding(ctx context.Context, unseenOnly bool) string {
	rev, generation := max(m.cons.View().Rev(), m.roster.Rev()), m.generation()
	answers := make(chan string, len(m.roster.Entries()))
	asked := 0
	for _, e := range m.roster.Entries() {
		if e.ID == m.d.id || unseenOnly && m.alive(e.ID) {
			continue
		}
		asked++
		m.wg.Go(func() {
			s, err := m.port.AskStanding(ctx, e.ID)
			switch {
			case err != nil || !outdated(s, rev, generation):
				answers <- ""
			case s.Generation > generation:
				answers <- fmt.Sprintf("the cluster was recovered without this node, %s says", e.ID)
			default:
				answers <- fmt.Sprintf("this node was removed from the cluster, %s says", e.ID)
			}
		})
	}
	reason := ""
	for range asked {
		if r := <-answers; r != "" {
			reason = r
		}
	}
	return reason
}

// leave ends the membership for good.
func (m *member) leave(reason string) {
	m.log.Warn("this node is no member any more: it stops serving minions", "node", m.d.id, "reason", reason)
	m.left.Store(&reason)
	m.fail(&ending{reason, func() error { return m.d.forget(reason) }})
}

// lostLog ends the membership of a node that forgot what it voted for: it must not vote again, and a founder must not found a
// second cluster. The others have everything.
func (d *Daemon) lostLog(what string) error {
	reason := fmt.Sprintf("%s, and a node that has forgotten what it voted for must not go on: on another node run saltclusterctl "+
		"remove %s, then join again; if no other node is left, restore a snapshot", what, d.id)
	d.log.Error("this node is no member any more", "node", d.id, "reason", reason)
	return &ending{reason, func() error { return d.forget(reason) }}
}
