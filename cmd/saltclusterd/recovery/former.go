package recovery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/consensus/state"
	"saltclusterd/durable"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/adminapi"
)

// formerInterval is how often former members are asked.
const formerInterval = 30 * time.Second

// formerMembers are the members that recoveries have dropped and that have not joined again.
type formerMembers struct {
	Version int          `json:"version"`
	Members []node.Entry `json:"members"`
}

const formerVersion = 1

func readFormer(stateDir string) (f formerMembers, err error) {
	text, err := os.ReadFile(membership.FormerPath(stateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		return formerMembers{}, fmt.Errorf("read %s: %w", membership.FormerPath(stateDir), err)
	}
	if err := membership.CheckVersion(membership.FormerPath(stateDir), f.Version, formerVersion); err != nil {
		return formerMembers{}, err
	}
	return f, nil
}

func (f formerMembers) write(stateDir string) error {
	path := membership.FormerPath(stateDir)
	if len(f.Members) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forget former members: %w", err)
		}
		return nil
	}
	f.Version = formerVersion
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("encode former members: %w", err)
	}
	return durable.WriteFile(path, append(text, '\n'), 0o600)
}

// addFormer adds members that a recovery drops to those of earlier ones.
func addFormer(stateDir string, self node.ID, dropped []node.Entry, log *slog.Logger) error {
	f, err := readFormer(stateDir)
	if err != nil {
		log.Warn("cannot read former members", "err", err)
	}
	for _, e := range dropped {
		f.Members = slices.DeleteFunc(f.Members, func(o node.Entry) bool { return o.ID == e.ID })
		if e.ID != self {
			f.Members = append(f.Members, e)
		}
	}
	return f.write(stateDir)
}

// FormerConfig is what a Former works with.
type FormerConfig struct {
	ClusterID string
	StateDir  string
	View      func() state.View
	// Ask asks a former member what its roster says of this node.
	Ask      func(context.Context, node.Entry) (peer.Standing, error)
	Interval time.Duration // 0: 30 s
	Logger   *slog.Logger
}

// Former asks the members that a recovery has dropped whether they belong to another cluster of this identity. A member
// can, if it was recovered as well, or if a majority has removed this node. Neither cluster has the other one on its
// roster, so no other way shows that minions are spread over both.
type Former struct {
	cfg    FormerConfig
	rivals atomic.Pointer[[]adminapi.Problem]
}

// NewFormer returns a Former.
func NewFormer(cfg FormerConfig) *Former {
	cfg.Interval = cmp.Or(cfg.Interval, formerInterval)
	return &Former{cfg: cfg}
}

// Run asks the former members until all of them have joined again, or ctx ends.
func (f *Former) Run(ctx context.Context) {
	known, err := readFormer(f.cfg.StateDir)
	if err != nil {
		f.cfg.Logger.Warn("cannot read former members", "err", err)
	}
	rivals := map[node.ID]string{} // and their addresses
	for ; len(known.Members) > 0; backoff.Sleep(ctx, f.cfg.Interval) {
		if ctx.Err() != nil {
			return
		}
		v := f.cfg.View()
		left := slices.DeleteFunc(slices.Clone(known.Members), func(e node.Entry) bool {
			_, back := v.Member(e.ID)
			return back
		})
		for _, e := range left {
			f.askMember(ctx, e, rivals)
		}
		for id := range rivals {
			if !slices.ContainsFunc(left, func(e node.Entry) bool { return e.ID == id }) {
				delete(rivals, id)
			}
		}
		f.setProblems(rivals)
		if len(left) < len(known.Members) {
			if known.Members = left; known.write(f.cfg.StateDir) != nil {
				f.cfg.Logger.Warn("former members not stored", "count", len(left))
			}
		}
	}
}

// askMember asks one former member, and adds it to rivals or removes it. A node without a cluster does not answer.
func (f *Former) askMember(ctx context.Context, e node.Entry, rivals map[node.ID]string) {
	s, err := f.cfg.Ask(ctx, e)
	switch {
	case err != nil: // what it answered before holds
	case s.Member: // its membership has ended, which it learns by asking this node
		delete(rivals, e.ID)
	default:
		if _, known := rivals[e.ID]; !known {
			f.cfg.Logger.Error("a node that was dropped belongs to another cluster of this identity",
				"node", e.ID, "addr", e.Addr)
		}
		rivals[e.ID] = e.Addr.String()
	}
}

func (f *Former) setProblems(rivals map[node.ID]string) {
	var problems []adminapi.Problem
	for id, addr := range rivals {
		problems = append(problems, adminapi.Problem{
			Level: adminapi.LevelFail, Node: string(id),
			Message: fmt.Sprintf("%s (%s) belongs to a cluster without this node, which was recovered or restored: there are two clusters %s with one identity, and minions get jobs from only one of them", id, addr, f.cfg.ClusterID),
			Hint: "1. decide which cluster continues; on each node of the other one: 2. systemctl stop saltclusterd " +
				"3. remove membership.json from its state_dir 4. systemctl start saltclusterd 5. saltclusterctl join NODE, a node " +
				"of the cluster that continues. Decisions about keys made there are lost, returns are not",
		})
	}
	slices.SortFunc(problems, func(a, b adminapi.Problem) int { return strings.Compare(a.Node, b.Node) })
	f.rivals.Store(&problems)
}

// Problems returns what the status says of former members that belong to another cluster.
func (f *Former) Problems() []adminapi.Problem {
	if p := f.rivals.Load(); p != nil {
		return *p
	}
	return nil
}
