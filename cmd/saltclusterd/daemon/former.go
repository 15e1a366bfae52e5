package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/durable"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// A recovery drops members that cannot be reached. Who of them was recovered as well, by another operator or the same one behind a
// partition, or belongs to a majority that has removed this node meanwhile, is a cluster of the same identity. None has the other on its
// roster, so neither would ever hear of it, nor step down, while minions are spread over both. So a node that was recovered remembers whom it has dropped and asks
// them what they are. It decides nothing: which of the two has lost less only an operator knows.

// formerEvery is how often they are asked.
const formerEvery = 30 * time.Second

// former are the members that were dropped and did not join again.
type former struct {
	Version int          `json:"version"`
	Members []node.Entry `json:"members"`
}

const formerVersion = 1

func readFormer(stateDir string) (f former, err error) {
	text, err := os.ReadFile(membership.FormerPath(stateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		return former{}, fmt.Errorf("read %s: %w", membership.FormerPath(stateDir), err)
	}
	return f, nil
}

// rememberFormer adds members that a recovery drops to those of earlier ones.
func (d *Daemon) rememberFormer(dropped []node.Entry) error {
	f, err := readFormer(d.cfg.Paths.StateDir)
	if err != nil {
		d.log.Warn("whom an earlier recovery has dropped is not known", "err", err)
	}
	for _, e := range dropped {
		f.Members = slices.DeleteFunc(f.Members, func(o node.Entry) bool { return o.ID == e.ID })
		if e.ID != d.id {
			f.Members = append(f.Members, e)
		}
	}
	return d.writeFormer(f)
}

func (d *Daemon) writeFormer(f former) error {
	path := membership.FormerPath(d.cfg.Paths.StateDir)
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

// watchFormer asks whom a recovery has dropped, until all of them have joined again.
func (m *member) watchFormer(ctx context.Context) {
	f, err := readFormer(m.d.cfg.Paths.StateDir)
	if err != nil {
		m.log.Warn("whom a recovery has dropped is not known", "err", err)
	}
	rivals := map[node.ID]string{}
	for ; len(f.Members) > 0; backoff.Sleep(ctx, m.d.formerEvery) {
		if ctx.Err() != nil {
			return
		}
		v := m.cons.View()
		left := slices.DeleteFunc(slices.Clone(f.Members), func(e node.Entry) bool {
			_, back := v.Member(e.ID)
			return back
		})
		for _, e := range left {
			s, err := m.port.AskFormer(ctx, e)
			switch {
			case err != nil: // what was known of it holds
			case s.Member: // it does not know yet that it is none: it asks us
				delete(rivals, e.ID)
			default: // who belongs to no cluster does not answer
				if _, known := rivals[e.ID]; !known {
					m.log.Error("a node that was dropped belongs to another cluster of this identity", "node", e.ID, "addr", e.Addr)
				}
				rivals[e.ID] = e.Addr.String()
			}
		}
		for id := range rivals {
			if !slices.ContainsFunc(left, func(e node.Entry) bool { return e.ID == id }) {
				delete(rivals, id)
			}
		}
		m.tellRivals(rivals)
		if len(left) < len(f.Members) {
			if f.Members = left; m.d.writeFormer(f) != nil {
				m.log.Warn("former members are not forgotten", "count", len(left))
			}
		}
	}
}

// tellRivals makes problems for the status.
func (m *member) tellRivals(rivals map[node.ID]string) {
	var problems []adminapi.Problem
	for id, addr := range rivals {
		problems = append(problems, adminapi.Problem{
			Level: adminapi.LevelFail, Node: string(id),
			Message: fmt.Sprintf("%s (%s) belongs to a cluster without this node, which was recovered or restored: there are two clusters %s with "+
				"one identity, and minions hear only one of them", id, addr, m.seed.ClusterID),
			Hint: "decide which one goes on; on each node of the other one stop saltclusterd, remove membership.json from its state_dir, " +
				"start it, and saltclusterctl join a node of the first (what was decided there about keys is lost, no return is)",
		})
	}
	slices.SortFunc(problems, func(a, b adminapi.Problem) int { return strings.Compare(a.Node, b.Node) })
	m.rivals.Store(&problems)
}

func (m *member) rivalProblems() []adminapi.Problem {
	if p := m.rivals.Load(); p != nil {
		return *p
	}
	return nil
}
