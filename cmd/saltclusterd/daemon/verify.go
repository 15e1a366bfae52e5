package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/fsync/ledger"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// pathLedger is where a node tells what it holds of a section.
const pathLedger = "/v1/ledger"

// section is one sort of things that all nodes should hold.
type section struct {
	name  string
	holds func() (ledger.Ledger, error) // this node
	truth func() ledger.Ledger          // what the cluster has decided, as this node knows it; nil: the nodes are compared with each other
	rules ledger.Rules
}

// sections lists what verify compares, in the order in which it is shown. Whoever replicates something else adds it here.
func (s *service) sections() []section {
	return []section{
		{name: "keys", holds: s.dir.Ledger, truth: s.dir.Decided},
		{name: "grains", holds: s.data.Ledger},
		{name: "pillar", holds: s.data.PillarLedger},
		{name: "mine", holds: s.mines.Ledger},
		{name: "tokens", holds: s.tokens.Ledger},
		{name: "roots", holds: func() (ledger.Ledger, error) { return s.roots.Ledger(s.ctx) }, truth: s.roots.Decided},
		{name: "jobs", holds: s.cache.Ledger, rules: s.jobRules()},
	}
}

func (s *service) section(name string) (section, bool) {
	for _, sec := range s.sections() {
		if sec.name == name {
			return sec, true
		}
	}
	return section{}, false
}

const (
	// decided is what a difference calls the cluster's decision beside the nodes.
	decided = "(cluster)"
	// looks is how often what differs is looked at: news are on their way for a moment.
	looks    = 3
	lookWait = 1500 * time.Millisecond // before the second look, doubled after it
	// maxDifferences is how many are listed of a section.
	maxDifferences = 200
	ledgerTimeout  = time.Minute
)

// Verify implements admin.Verifier.
func (d *Daemon) Verify(ctx context.Context) (adminapi.Verification, error) {
	m := d.current()
	if m == nil {
		return adminapi.Verification{}, d.errNoMember()
	}
	if m.svc == nil {
		return adminapi.Verification{}, adminapi.Errorf(adminapi.CodeInvalid, "ask on a node that has a salt-master", "a witness holds nothing to compare")
	}
	out := adminapi.Verification{From: string(d.id)}
	sections := m.svc.sections()
	found := make([]comparison, len(sections))
	for look, pause := 0, lookWait; look < looks; look++ {
		if look > 0 {
			if !backoff.Sleep(ctx, pause) {
				return out, context.Cause(ctx)
			}
			pause *= 2
		}
		open := false
		for i, sec := range sections {
			if look == 0 || found[i].unsettled() {
				found[i].look(m.compare(ctx, sec), sec.rules)
				open = open || found[i].unsettled()
			}
		}
		if !open {
			break
		}
	}
	for i, sec := range sections {
		out.Sections = append(out.Sections, found[i].report(sec.name))
	}
	return out, ctx.Err()
}

// answers are the ledgers of one section.
type answers struct {
	ledgers map[string]ledger.Ledger
	missing map[string]string
}

// compare asks all members that have a master.
func (m *member) compare(ctx context.Context, sec section) answers {
	a := answers{ledgers: map[string]ledger.Ledger{}, missing: map[string]string{}}
	if sec.truth != nil {
		a.ledgers[decided] = sec.truth()
	}
	ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, id := range append(m.otherMasters(), m.d.id) {
		wg.Go(func() {
			l, err := m.ledgerOf(ctx, id, sec)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				a.missing[string(id)] = peerrpc.Reason(err)
				return
			}
			a.ledgers[string(id)] = l
		})
	}
	wg.Wait()
	return a
}

func (m *member) ledgerOf(ctx context.Context, id node.ID, sec section) (ledger.Ledger, error) {
	if id == m.d.id {
		return sec.holds()
	}
	raw, err := m.call(ctx, http.MethodGet, id, pathLedger+"?section="+url.QueryEscape(sec.name), nil, ledger.MaxBody)
	if err != nil {
		if strings.Contains(err.Error(), http.StatusText(http.StatusNotFound)) {
			return ledger.Ledger{}, errors.New("its saltclusterd is of an older version")
		}
		return ledger.Ledger{}, err
	}
	return ledger.Decode(raw)
}

// handleLedger answers a peer's ledgerOf.
func (m *member) handleLedger(w http.ResponseWriter, r *http.Request) {
	sec, ok := m.svc.section(r.URL.Query().Get("section"))
	if !ok {
		http.Error(w, "no such section", http.StatusNotFound)
		return
	}
	l, err := sec.holds()
	if err == nil {
		var raw []byte
		if raw, err = l.Encode(); err == nil {
			_, _ = w.Write(raw)
			return
		}
	}
	http.Error(w, fmt.Sprintf("%s: %v", sec.name, err), http.StatusInternalServerError)
}

// comparison is what the looks at one section have found.
type comparison struct {
	last    answers
	differ  []ledger.Difference
	settled []ledger.Difference
	moving  int
}

func (c *comparison) look(a answers, rules ledger.Rules) {
	differ := rules.Compare(a.ledgers)
	settled, moving := ledger.Settled(c.differ, differ)
	c.last, c.differ, c.settled, c.moving = a, differ, settled, len(moving)
}

// unsettled says whether another look might find less.
func (c *comparison) unsettled() bool { return len(c.differ) > 0 }

func (c *comparison) report(name string) adminapi.VerifiedSection {
	out := adminapi.VerifiedSection{Name: name, Missing: c.last.missing, Off: map[string]string{}, Moving: c.moving}
	all := map[string]struct{}{}
	for id, l := range c.last.ledgers {
		if l.Off != "" {
			out.Off[id] = l.Off
		}
		for item, text := range l.Items {
			if text != ledger.Removed {
				all[item] = struct{}{}
			}
		}
	}
	out.Items = len(all)
	for i, d := range c.settled {
		if i == maxDifferences {
			out.More = len(c.settled) - i
			break
		}
		v := adminapi.VerifyDifference{Item: d.Item, Nodes: maps.Clone(d.Texts)}
		for _, id := range d.Lacking {
			v.Nodes[id] = ""
		}
		out.Differences = append(out.Differences, v)
	}
	return out
}
