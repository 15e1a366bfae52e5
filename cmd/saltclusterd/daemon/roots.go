package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/fsync/roots"
	"saltclusterd/fsync/tree"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
)

// rootsEngine is what keeps the trees equal (roots.Store).
type rootsEngine interface {
	part
	Handler() http.Handler
	Status() roots.Status
	CaughtUp() bool
	Sync(ctx context.Context, o roots.SyncOptions) (roots.SyncResult, error)
	Diff(ctx context.Context, other node.ID) ([]roots.Change, error)
	Rollback(ctx context.Context, number uint64) (roots.Revision, error)
	Refill(ctx context.Context, dir string) error
	Conflicts() []roots.Conflict
	Resolve(ctx context.Context, id string) error
	Drop(ctx context.Context, id string) error
}

// trees is the file and pillar roots of this node. Without an engine they are not replicated: off says why.
type trees struct {
	rootsEngine
	off   string
	slots []roots.Slot
	notes []string // what an operator should know about the slots
	order *rootsOrder
	end   func() // of order
}

// newTrees makes what keeps file_roots and pillar_roots as they are on the other nodes.
func (s *service) newTrees() (*trees, error) {
	d := s.m.d
	switch {
	case d.shares() && !d.standsIn():
		return &trees{off: "the nodes share their file system (cluster_isolated_filesystem: False)"}, nil
	case d.cfg.Roots.Sync == config.RootsOff:
		return &trees{off: "cluster_roots_sync is off"}, nil
	}
	owner, err := d.master.Owner()
	if err != nil {
		return nil, err
	}
	slots, notes := rootSlots(d.master, d.cfg.Paths.StateDir, d.cfg.Paths.RunDir, d.master.CacheDir, d.master.PkiDir, d.master.SockDir)
	order := s.newRootsOrder(slots)
	engine, err := roots.New(roots.Config{
		Self: d.id, Slots: slots, StateDir: s.rootsDir(), UID: owner.UID, GID: owner.GID,
		Mode: roots.Mode(d.cfg.Roots.Sync), MaxDeletePercent: d.cfg.Roots.MaxDelete, Ignore: d.cfg.Roots.Ignore,
		HistoryBytes: int64(d.cfg.Roots.History),
		Log:          rootsLog{s.m}, Peers: rootsPeers{s.m}, Gate: rootsGate{s}, From: peer.FromContext, AfterSwitch: s.forgetLists, Order: order.Bad,
		Logger: d.log, Registerer: d.reg,
	})
	if err != nil {
		return nil, err
	}
	return &trees{rootsEngine: engine, slots: slots, notes: notes, order: order}, nil
}

// treesPart opens and closes the roots of a service.
type treesPart struct{ s *service }

// Open implements part.
func (p treesPart) Open(ctx context.Context) error { return p.s.openTrees(ctx) }

// Close implements part.
func (p treesPart) Close() error { return p.s.closeTrees() }

func (s *service) rootsDir() string { return filepath.Join(s.m.d.cfg.Paths.StateDir, "roots") }

// rootsLog is consensus as the roots' engine needs it (roots.Log).
type rootsLog struct{ m *member }

// Head implements roots.Log.
func (l rootsLog) Head() (roots.Revision, bool) {
	r, ok := l.m.cons.View().RootsHead()
	if !ok {
		return roots.Revision{}, false
	}
	out, err := revision(r)
	return out, err == nil
}

// Ready implements roots.Log.
func (l rootsLog) Ready() bool { return l.m.cons.CaughtUp() }

// Revisions implements roots.Log.
func (l rootsLog) Revisions() []roots.Revision {
	var out []roots.Revision
	for _, r := range l.m.cons.View().RootsRevisions() {
		if rev, err := revision(r); err == nil {
			out = append(out, rev)
		}
	}
	return out
}

// Changed implements roots.Log.
func (l rootsLog) Changed(ctx context.Context) <-chan struct{} { return l.m.cons.Watch(ctx) }

// Propose implements roots.Log.
func (l rootsLog) Propose(ctx context.Context, p roots.Proposal) (roots.Revision, error) {
	if err := l.m.rootsUnderstood(); err != nil {
		return roots.Revision{}, err
	}
	l.m.svc.forgetLists(nil) // the master must see what was edited here before minions can hear of it elsewhere
	number, err := l.m.proposeRoots(ctx, state.RootsPropose{
		Parent: p.Parent, Author: l.m.d.id, Root: p.Root.String(), Kind: string(p.Kind), Held: p.Held && !p.Confirmed,
		Stats: state.RootsStats{
			Files: int64(p.Stats.Files), Bytes: p.Stats.Bytes, Changed: int64(p.Stats.Changed), Removed: int64(p.Stats.Removed),
		},
		Note: p.Note,
	})
	if err != nil {
		return roots.Revision{}, err
	}
	for _, r := range l.m.cons.View().RootsRevisions() {
		if r.Number == number {
			return revision(r)
		}
	}
	return roots.Revision{}, fmt.Errorf("%w: %w: this node has not heard of revision %d yet", roots.ErrNoQuorum, roots.ErrUncertain, number)
}

// proposeRoots has a command about the trees decided, and returns the number of the revision it made or changed.
func (m *member) proposeRoots(ctx context.Context, c state.Command) (uint64, error) {
	results, err := m.cons.Propose(ctx, c)
	if errors.Is(err, consensus.ErrUncertain) {
		return 0, fmt.Errorf("%s: %w: %w: %w", c.Type(), roots.ErrNoQuorum, roots.ErrUncertain, err)
	}
	if errors.Is(err, consensus.ErrNoLeader) {
		return 0, fmt.Errorf("%s: %w: %w", c.Type(), roots.ErrNoQuorum, err)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", c.Type(), err)
	}
	if err := results[0].Err(); state.IsConflict(err) {
		return 0, fmt.Errorf("%w: %w", roots.ErrNotCurrent, err)
	} else if err != nil {
		return 0, err
	}
	return results[0].Rev, nil
}

// revision is a revision as the engine knows it.
func revision(r state.RootsRevision) (roots.Revision, error) {
	root, err := tree.ParseHash(r.Root)
	if err != nil {
		return roots.Revision{}, fmt.Errorf("revision %d of the trees: %w", r.Number, err)
	}
	st := roots.StateApplied
	switch r.State {
	case state.RootsHeld:
		st = roots.StateHeld
	case state.RootsDropped:
		st = roots.StateDropped
	}
	return roots.Revision{
		Number: r.Number, Parent: r.Parent, Root: root, Author: r.Author, Time: uint64(r.At) << 16, Kind: roots.Kind(r.Kind), State: st,
		Stats: roots.Stats{
			Files: int(r.Stats.Files), Bytes: r.Stats.Bytes, Changed: int(r.Stats.Changed), Removed: int(r.Stats.Removed),
		},
		Note: r.Note,
	}, nil
}

// rootsUnderstood says who would not understand a proposal about the trees: an older saltclusterd stops when it meets one
// in the log. One that is down while all others are upgraded does so when it comes back, and has to be upgraded then.
func (m *member) rootsUnderstood() error { return understood(m.membersWithoutRoots()) }

// membersWithoutRoots lists the members that do not understand commands about roots, and those whose version is not known yet.
func (m *member) membersWithoutRoots() (older, unseen []string) {
	return membersWithout(m.otherMembers(), m.gossip.Member, time.Since(m.since), func(meta node.Meta) bool { return meta.Roots })
}

func understood(older, unseen []string) error {
	switch {
	case len(older) > 0:
		return fmt.Errorf("%w: roots are not replicated before saltclusterd is upgraded on %s", roots.ErrNoQuorum, strings.Join(older, ", "))
	case len(unseen) > 0:
		return fmt.Errorf("%w: it is not known yet which version of saltclusterd runs on %s", roots.ErrNoQuorum, strings.Join(unseen, ", "))
	}
	return nil
}

// rootsPeers implements roots.Peers.
type rootsPeers struct{ m *member }

// Members implements roots.Peers.
func (p rootsPeers) Members() []node.ID {
	out, _ := p.m.catchupPeers()
	return out
}

// Fetch implements roots.Peers.
func (p rootsPeers) Fetch(ctx context.Context, from node.ID, body []byte) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+string(from)+roots.Path, strings.NewReader(string(body)))
	if err != nil {
		return nil, fmt.Errorf("fetch from %s: %w", from, err)
	}
	resp, err := p.m.port.HTTPClient().Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetch from %s: %w", from, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		return nil, fmt.Errorf("fetch from %s: %s: %s", from, resp.Status, oneLine(string(text)))
	}
	return resp.Body, nil
}

// rootsGate implements roots.Gate.
type rootsGate struct{ s *service }

// Hold implements roots.Gate.
func (g rootsGate) Hold(ctx context.Context) (func(), error) { return g.s.proxy.HoldFiles(ctx) }

// forgetLists makes the master list its files anew: it keeps lists of each environment for 20 seconds and longer
// (salt/fileserver/__init__.py check_file_list_cache). Hashes it keeps with the time of the file, which is another one.
func (s *service) forgetLists([]roots.SlotName) {
	s.files.Forget() // first: a list that is being made is not written then
	dir := filepath.Join(s.m.d.master.CacheDir, "file_lists", "roots")
	lists, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.m.log.Warn("the master's lists of files are not renewed", "path", dir, "err", err)
	}
	for _, l := range lists {
		if filepath.Ext(l.Name()) != ".p" {
			continue
		}
		if err := os.Remove(filepath.Join(dir, l.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.m.log.Warn("the master's list of files is not renewed", "path", filepath.Join(dir, l.Name()), "err", err)
		}
	}
}
