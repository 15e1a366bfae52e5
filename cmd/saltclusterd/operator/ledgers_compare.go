package operator

import (
	"context"
	"maps"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/fsync/ledger"
	"saltclusterd/sidecar/adminapi"
)

const (
	// maxRounds is how often what differs is asked for: changes need a moment to reach all nodes.
	maxRounds  = 3
	roundPause = 1500 * time.Millisecond // before the second round, doubled after it
	// maxDifferences is how many are listed of a section.
	maxDifferences = 200
)

// Verifying implements admin.Verifier for a node that may be no member.
type Verifying struct {
	Of func() (*Ledgers, error) // of the running membership
}

// Verify implements admin.Verifier.
func (v Verifying) Verify(ctx context.Context) (adminapi.Verification, error) {
	l, err := v.Of()
	if err != nil {
		return adminapi.Verification{}, err
	}
	return l.compareLedgers(ctx)
}

// compareLedgers asks again for sections that differ, until they do not or maxRounds is reached.
func (l *Ledgers) compareLedgers(ctx context.Context) (adminapi.Verification, error) {
	out := adminapi.Verification{From: string(l.cfg.Self)}
	sections := l.cfg.Sections
	found := make([]comparison, len(sections))
	pause := backoff.Backoff{Min: roundPause, Max: roundPause << maxRounds}
	for round := range maxRounds {
		if round > 0 && !pause.Wait(ctx) {
			return out, context.Cause(ctx)
		}
		differ := false
		for i, s := range sections {
			if round == 0 || found[i].differs() {
				found[i].addRound(l.collectLedgers(ctx, s), s.Rules)
				differ = differ || found[i].differs()
			}
		}
		if !differ {
			break
		}
	}
	for i, s := range sections {
		out.Sections = append(out.Sections, found[i].report(s.Name))
	}
	return out, ctx.Err()
}

// answers are the ledgers of one section, and the reasons of members that did not answer.
type answers struct {
	ledgers map[string]ledger.Ledger
	missing map[string]string
}

// comparison is what the rounds about one section have found.
type comparison struct {
	last    answers
	found   []ledger.Difference
	settled []ledger.Difference // found in the round before, with the same texts
	moving  int
}

func (c *comparison) addRound(a answers, rules ledger.Rules) {
	found := rules.Compare(a.ledgers)
	settled, moving := ledger.Settled(c.found, found)
	c.last, c.found, c.settled, c.moving = a, found, settled, len(moving)
}

// differs says whether another round might find less.
func (c *comparison) differs() bool { return len(c.found) > 0 }

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
