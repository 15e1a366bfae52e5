package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/sidecar/adminapi"
)

const (
	defaultHealthy = 2 * time.Minute
	guidePoll      = 300 * time.Millisecond
	guideSays      = 2 * time.Second // how often progress of one step is printed
	// guideAlone is how long saltclusterd may be out of reach: its process is replaced on the way.
	guideAlone = 90 * time.Second
	// cutOff is how long a node may be idle in the middle of a step before a switch is resumed, or the guide stops.
	cutOff = 30 * time.Second
)

// guide leads all nodes from the share to their own disks. The nodes themselves remember what has been done.
type guide struct {
	e       *console.Env
	client  *adminapi.Client
	to      string
	standIn string
	only    string
	healthy time.Duration

	said   string
	saidAt time.Time
}

func (g *guide) printNode(node, format string, args ...any) {
	text := fmt.Sprintf("%s: %s", console.Clean(node), console.Clean(fmt.Sprintf(format, args...)))
	if text != g.said {
		g.said, g.saidAt = text, time.Now()
		fmt.Fprintln(g.e.Stderr, text)
	}
}

// runMigration migrates the node that was named, or all.
func (g *guide) runMigration(ctx context.Context) error {
	m, err := g.client.Migration(ctx, true, g.to)
	if err != nil {
		return err
	}
	order, err := g.nodeOrder(m)
	if err != nil {
		return err
	}
	if g.only != "" {
		if !slices.Contains(order, g.only) {
			return console.Refusedf("saltclusterctl migrate status", "%s shares no file system, or is not a member", g.only)
		}
		if n := len(order); n > 1 && g.only == order[n-1] {
			return console.Refusedf("name another one first, or --stand-in NODE", "%s is the stand-in for the share: it leaves last", g.only)
		}
	}
	if n := len(order); n > 1 {
		if err := g.runStep(ctx, order[n-1], adminapi.MigrateStandIn,
			func(n adminapi.MigrateNode) bool { return n.StandIn }); err != nil {
			return err
		}
	}
	for _, id := range order {
		if g.only != "" && id != g.only {
			continue
		}
		if err := g.migrateNode(ctx, id); err != nil {
			return err
		}
	}
	return g.awaitHealthy(ctx)
}

// nodeOrder lists the nodes that still have to leave the share, the one that stands for it last.
func (g *guide) nodeOrder(m adminapi.Migration) ([]string, error) {
	for id, why := range m.Missing {
		return nil, console.Refusedf("start it first; saltclusterctl status", "%s does not answer: %s", id, why)
	}
	var order []string
	last := g.standIn
	trees := -1
	for _, n := range m.Nodes {
		if !n.Shared && n.Stage != "switching" {
			continue
		}
		if len(n.Refused) > 0 && n.Shared {
			return nil, console.Refusedf("saltclusterctl migrate --dry-run", "%s: %s", n.Node, strings.Join(n.Refused, "; "))
		}
		order = append(order, n.Node)
		switch {
		case g.standIn != "" || !n.Shared:
		case n.StandIn:
			last, trees = n.Node, 1<<30
		case len(n.Trees) >= trees: // who has most on the share can stand for most
			last, trees = n.Node, len(n.Trees)
		}
	}
	i := slices.Index(order, last)
	if i < 0 && g.standIn != "" {
		return nil, console.Refusedf("saltclusterctl migrate status", "%s shares no file system, or is not a member", g.standIn)
	}
	if i >= 0 {
		order = append(slices.Delete(order, i, i+1), last)
	}
	return order, nil
}

// migrateNode migrates one node.
func (g *guide) migrateNode(ctx context.Context, id string) error {
	n, err := g.findNode(ctx, id)
	if err != nil {
		return err
	}
	if n.Busy != "" { // of a run before this one
		if n, err = g.awaitStep(ctx, id, n.Busy, func(n adminapi.MigrateNode) bool { return true }); err != nil {
			return err
		}
	}
	if n.Stage == "isolated" {
		return nil
	}
	if n.Stage != "switching" {
		if err := g.awaitHealthy(ctx); err != nil {
			return err
		}
		copied := func(n adminapi.MigrateNode) bool { return n.Stage == "copied" }
		if err := g.runStep(ctx, id, adminapi.MigrateCopy, copied); err != nil {
			return err
		}
		if n, err = g.findNode(ctx, id); err != nil {
			return err
		}
		g.printNode(id, "copied: %d files, %d MiB", n.Copied.Files, n.Copied.Bytes>>20)
	}
	isolated := func(n adminapi.MigrateNode) bool { return n.Stage == "isolated" }
	if err := g.runStep(ctx, id, adminapi.MigrateSwitch, isolated); err != nil {
		return err
	}
	g.printNode(id, "has left the share")
	return nil
}

func (g *guide) moveBack(ctx context.Context) error {
	shared := func(n adminapi.MigrateNode) bool { return n.Shared && n.Switched.IsZero() }
	if err := g.runStep(ctx, g.only, adminapi.MigrateBack, shared); err != nil {
		return err
	}
	g.printNode(g.only, "is back on the share")
	return nil
}

// runStep has a node do something and waits until it is done.
func (g *guide) runStep(ctx context.Context, id string, step adminapi.MigrateStep,
	done func(adminapi.MigrateNode) bool) error {
	n, err := g.findNode(ctx, id)
	if err != nil {
		return err
	}
	if n.Busy != step && (step == adminapi.MigrateCopy || !done(n)) {
		if _, err := g.client.Migrate(ctx, adminapi.MigrateRequest{Node: id, Step: step, To: g.to}); err != nil {
			return err
		}
	}
	_, err = g.awaitStep(ctx, id, step, done)
	return err
}

// awaitStep waits until a node is not busy any more and as it should be.
func (g *guide) awaitStep(ctx context.Context, id string, step adminapi.MigrateStep,
	done func(adminapi.MigrateNode) bool) (adminapi.MigrateNode, error) {
	idle := time.Time{}
	for {
		n, err := g.findNode(ctx, id)
		if err != nil {
			return n, err
		}
		switch {
		case n.Busy != "":
			idle = time.Time{}
			g.printProgress(n)
		case n.Error != "":
			return n, console.Refusedf("saltclusterctl migrate --all-nodes resumes once that is fixed; the log of saltclusterd on "+id+" has more", "%s: %s", id, n.Error)
		case done(n):
			return n, nil
		case idle.IsZero():
			idle = time.Now()
		case time.Since(idle) > cutOff && n.Stage == "switching":
			if _, err := g.client.Migrate(ctx, adminapi.MigrateRequest{Node: id, Step: adminapi.MigrateSwitch}); err != nil {
				return n, err
			}
			idle = time.Time{}
		case time.Since(idle) > cutOff:
			return n, console.Refusedf("saltclusterctl migrate --all-nodes begins it again",
				"%s has not finished %q: its saltclusterd was restarted in between", id, step)
		}
		if !backoff.Sleep(ctx, guidePoll) {
			return n, ctx.Err()
		}
	}
}

// printProgress tells what a node does, and what a person has to.
func (g *guide) printProgress(n adminapi.MigrateNode) {
	if n.ByHand != nil {
		s := g.e.NewScreen()
		byHand(s, n)
		if text := s.String(); text != "" && text != g.said {
			g.said, g.saidAt = text, time.Now()
			fmt.Fprint(g.e.Stderr, text)
		} else if text == "" {
			g.printNode(n.Node, "%s", n.ByHand.Why)
		}
		return
	}
	if n.Doing != "" && time.Since(g.saidAt) > guideSays {
		g.printNode(n.Node, "%s", n.Doing)
	}
}

// findNode asks how far one node is. saltclusterd may be out of reach for a moment, here or there.
func (g *guide) findNode(ctx context.Context, id string) (adminapi.MigrateNode, error) {
	began := time.Now()
	for {
		m, err := g.client.Migration(ctx, false, "")
		if err == nil {
			if i := slices.IndexFunc(m.Nodes, func(n adminapi.MigrateNode) bool { return n.Node == id }); i >= 0 {
				return m.Nodes[i], nil
			}
			why, known := m.Missing[id]
			if err = fmt.Errorf("%s does not answer: %s", id, why); !known {
				return adminapi.MigrateNode{}, console.Refusedf("saltclusterctl members", "%q is not a member with a salt-master", id)
			}
		}
		if ctx.Err() != nil || time.Since(began) > guideAlone {
			return adminapi.MigrateNode{}, err
		}
		g.client.Close() // the next question must not go to a process that has handed over
		time.Sleep(guidePoll)
	}
}

// awaitHealthy waits until all nodes are well, and hold the same; else it refuses.
func (g *guide) awaitHealthy(ctx context.Context) error {
	end := time.Now().Add(g.healthy)
	for {
		why, err := g.findProblem(ctx)
		if why == "" && err == nil {
			return nil
		}
		if _, gone := errors.AsType[*adminapi.UnreachableError](err); err != nil && !gone &&
			adminapi.CodeOf(err) != adminapi.CodeUnavailable {
			return err
		}
		if time.Now().After(end) {
			return console.Refusedf("saltclusterctl status, saltclusterctl verify; then saltclusterctl migrate --all-nodes resumes",
				"the cluster has a problem: %s", why)
		}
		g.client.Close()
		if !backoff.Sleep(ctx, guidePoll) {
			return ctx.Err()
		}
	}
}

// findProblem says what is not well.
func (g *guide) findProblem(ctx context.Context) (string, error) {
	m, err := g.client.Migration(ctx, false, "")
	if err != nil {
		return "saltclusterd does not answer", err
	}
	for id, why := range m.Missing {
		return fmt.Sprintf("%s does not answer: %s", id, why), nil
	}
	for _, n := range m.Nodes {
		if !n.Caught {
			return fmt.Sprintf("%s: %s", n.Node, n.Behind), nil
		}
	}
	v, err := g.client.Verify(ctx)
	switch {
	case err != nil:
		return "the nodes cannot be compared", err
	case !v.Complete():
		return "not all nodes can be compared", nil
	case !v.Same():
		for _, s := range v.Sections {
			if len(s.Differences) > 0 {
				return fmt.Sprintf("the nodes differ: %s %s", s.Name, s.Differences[0].Item), nil
			}
		}
	}
	return "", nil
}
