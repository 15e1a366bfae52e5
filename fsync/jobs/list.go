package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/gossip/node"
)

// Summary is a job in a list.
type Summary struct {
	JID      string
	Function string
	Target   string // shortened
	User     string
	Minions  int // that the job was for; 0: unknown
	Returned int
	Nodes    []node.ID // that have it
}

// maxList bounds the jobs of a list.
const maxList = 10_000

// decodeSummaries reads what a member answers.
func decodeSummaries(raw []byte) (all []Summary, err error) {
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("list of jobs: %w", err)
	}
	return all, nil
}

// List returns the newest jobs of all members that answer, and those that did not.
func (s *Store) List(ctx context.Context, n int) (list []Summary, silent []node.ID) {
	n = min(max(n, 1), maxList)
	members := append([]node.ID{s.cfg.Self}, s.cfg.Members()...)
	found := make([][]Summary, len(members))
	failed := make([]bool, len(members))
	var wg sync.WaitGroup
	for i, id := range members {
		wg.Go(func() {
			raw, err := s.ask(ctx, id, encodeList(n))
			if err == nil {
				found[i], err = decodeSummaries(raw)
			}
			failed[i] = err != nil
		})
	}
	wg.Wait()
	all := map[string]*Summary{}
	for i, id := range members {
		if failed[i] {
			silent = append(silent, id)
		}
		for _, one := range found[i] {
			have := all[one.JID]
			if have == nil || one.Returned > have.Returned || have.Function == "" {
				if have != nil {
					one.Nodes = have.Nodes
				} else {
					one.Nodes = nil
				}
				have = &one
				all[one.JID] = have
			}
			have.Nodes = append(have.Nodes, id)
		}
	}
	for _, one := range all {
		list = append(list, *one)
	}
	newestFirst(list)
	return list[:min(n, len(list))], silent
}

func newestFirst(list []Summary) {
	slices.SortFunc(list, func(a, b Summary) int { return strings.Compare(b.JID, a.JID) })
}

// localList answers the newest jobs here.
func (s *Store) localList(n int) ([]byte, error) {
	var jids []string
	s.index.mu.Lock()
	for jid := range s.index.jobs {
		jids = append(jids, jid)
	}
	s.index.mu.Unlock()
	slices.SortFunc(jids, func(a, b string) int { return strings.Compare(b, a) })
	out := []Summary{}
	for _, jid := range jids[:min(n, len(jids))] {
		if one, ok := s.summary(jid); ok {
			out = append(out, one)
		}
	}
	return json.Marshal(out)
}

func (s *Store) summary(jid string) (Summary, bool) {
	j, ok := s.index.fresh(jid)
	if !ok {
		return Summary{}, false
	}
	one := Summary{JID: jid, Returned: int(j.names)}
	var items []item
	for _, name := range []string{minionsFile, loadFile} {
		items = append(items, item{name: name})
	}
	_ = s.disk.fetch(jid, j.at, items, func(r *record) error {
		if r.name == minionsFile {
			if n, _, err := msgp.ReadArrayHeaderBytes(r.data); err == nil {
				one.Minions = int(n)
			}
			return nil
		}
		one.describe(r.data)
		return nil
	}, func(item, error) {})
	return one, true
}

// maxShown is how much of a target or name a list shows.
const maxShown = 200

// describe takes what a list shows out of a load.
func (one *Summary) describe(load []byte) {
	v, _, err := msgp.ReadMapStrIntfBytes(load, nil)
	if err != nil {
		return
	}
	text := func(name string) string {
		switch t := v[name].(type) {
		case nil:
			return ""
		case string:
			return t[:min(len(t), maxShown)]
		case []any:
			var b strings.Builder
			for i, e := range t {
				if b.Len() > maxShown {
					return b.String()[:maxShown] + "…"
				}
				if i > 0 {
					b.WriteByte(',')
				}
				fmt.Fprint(&b, e)
			}
			return b.String()
		default:
			s := fmt.Sprint(t)
			return s[:min(len(s), maxShown)]
		}
	}
	one.Function, one.Target, one.User = text("fun"), text("tgt"), text("user")
	if in, ok := v["return"].(map[string]any); ok && one.Function == "" {
		one.Function, _ = in["fun"].(string)
		one.User, _ = in["user"].(string)
	}
}
