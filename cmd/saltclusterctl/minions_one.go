package main

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/keys"
	"saltclusterd/sidecar/adminapi"
)

// oneMinion is all that the cluster knows of a minion.
type oneMinion struct {
	ID    string               `json:"id"`
	Keys  []adminapi.MinionKey `json:"keys"`
	Heard *heardOne            `json:"heard,omitempty"` // nil: no node remembers it
	Owner *adminapi.RingOwner  `json:"owner,omitempty"` // nil: without a ring

	// Connections are those to 4505 from the address that its requests come from. Minions behind one address cannot be
	// told apart.
	Connections []adminapi.Subscriber `json:"connections"`
	Missing     []string              `json:"missing,omitempty"`
}

// heardOne is the minion's latest request, and its latest return.
type heardOne struct {
	Seen     time.Time              `json:"seen,omitzero"`
	Node     string                 `json:"node"`
	Address  string                 `json:"address,omitempty"`
	Version  int                    `json:"version"` // of its payload, the highest
	Returned *adminapi.MinionReturn `json:"returned,omitempty"`
}

func runOneMinion(c *cli.Context, e *console.Env, id string) error {
	one, err := console.AskAdmin(c, e, func(client *adminapi.Client, ctx context.Context) (oneMinion, error) {
		return askOneMinion(ctx, client, id)
	})
	if err != nil {
		return err
	}
	return e.PrintValue(c, one, func(s *console.Screen) { oneMinionScreen(s, one, time.Now()) })
}

func askOneMinion(ctx context.Context, client *adminapi.Client, id string) (oneMinion, error) {
	one := oneMinion{ID: id, Connections: []adminapi.Subscriber{}}
	keys, err := client.Keys(ctx, adminapi.KeyQuery{ID: id})
	if err != nil {
		return one, err
	}
	if one.Keys = keys.Keys; len(one.Keys) == 0 {
		return one, adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl keys list", "the cluster knows no minion %s", id)
	}
	p, err := client.Protocols(ctx)
	if err != nil {
		return one, err
	}
	ring, err := client.RingInfo(ctx, adminapi.RingQuery{Minion: id})
	if err != nil {
		return one, err
	}
	one.Owner, one.Missing = ring.Owner, p.Missing
	at := slices.IndexFunc(p.Minions, func(m adminapi.MinionProtocol) bool { return m.ID == id })
	if at < 0 {
		return one, nil
	}
	m := p.Minions[at]
	one.Heard = &heardOne{Seen: m.Seen, Node: m.Node, Address: m.Address, Version: m.Version, Returned: m.Returned}
	subs, err := client.Minions(ctx)
	if err != nil {
		return one, err
	}
	one.Connections = slices.DeleteFunc(subs.Subscribers,
		func(s adminapi.Subscriber) bool { return !sameHost(s.Remote, m.Address) })
	return one, nil
}

// sameHost says whether remote, address:port, is of the address.
func sameHost(remote, address string) bool {
	r, err := netip.ParseAddrPort(remote)
	a, bad := netip.ParseAddr(address)
	return err == nil && bad == nil && r.Addr().Unmap() == a.Unmap()
}

func oneMinionScreen(s *console.Screen, one oneMinion, now time.Time) {
	keys.KeyFacts(s, one.Keys)
	s.Line("")
	rows := [][]console.Cell{}
	fact := func(name, value string) { rows = append(rows, []console.Cell{{Text: name}, console.Txt(value)}) }
	if h := one.Heard; h != nil {
		fact("last contact", heardText(h.Seen, now))
		fact("on", h.Node)
		fact("address", h.Address)
		fact("payload version", strconv.Itoa(h.Version))
		if r := h.Returned; r != nil {
			fact("returned", strings.TrimSpace(r.Function+" "+heardText(r.At, now)))
			if r.JID != ownJob {
				fact("job", r.JID)
			}
		}
	} else {
		fact("last contact", "none yet")
	}
	if o := one.Owner; o != nil {
		fact("owner", o.Node)
		fact("without it", strings.Join(o.Next, ", then "))
	}
	s.PrintTable("  ", nil, rows)
	if len(one.Connections) > 0 {
		s.Line("\nconnections to 4505 from its address")
		s.PrintTable("  ", []string{"NODE", "ADDRESS", "CONNECTED", "SILENT"}, connectionRows(one.Connections, now))
	}
	s.PrintMissing(one.Missing)
}

// ownJob is the job id of what a minion's schedule or salt-call ran.
const ownJob = "req"
