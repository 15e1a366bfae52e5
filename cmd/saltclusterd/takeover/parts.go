package takeover

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/router"
)

const (
	freezeTimeout = 2 * time.Second
	finalJobs     = 1024 // jobs that are sent again while everything is frozen
)

// PublishPort is the port on which minions subscribe (*edge.PubEdge).
type PublishPort interface {
	Freeze(context.Context) error
	Thaw()
	Export(context.Context) (edge.State, error)
	Import(edge.State) error
	Hand()
	Stats() edge.PubStats
}

// RequestPort is the port for requests of minions (*edge.ReqEdge).
type RequestPort interface {
	Freeze(context.Context) error
	Thaw()
	Export(context.Context) (edge.State, error)
	Import(edge.State) error
	Hand(pass func(edge.Answer))
	Unanswered() int
	Finish(edge.Answer)
	Orphan() int
}

// Subscription receives the publications of the local master (*upstream.SubClient).
type Subscription interface {
	Pause(context.Context) error
	Unpause()
	Export() (record []byte, descriptor int, err error)
	Import(record []byte, descriptor int) error
	Hand()
}

// Hub spreads publications among the members (*fanout.Hub).
type Hub interface {
	Freeze(context.Context) error
	Thaw()
	Export() []byte
	ExportRecent() []byte
	Import([]byte) error
	ImportRecent([]byte) error
	Hand()
}

// Intake decrypts the publications of the local master (*sidecar.Intake).
type Intake interface {
	Export() []byte
	Import([]byte) error
}

// Log is the consensus log (*consensus.Node).
type Log interface {
	View() state.View
	Preload(io.Reader) error
}

// Clock is the clock of serials (*hlc.Clock).
type Clock interface {
	Last() hlc.Timestamp
	GoOn(last hlc.Timestamp)
}

// RunningJobs are the jobs that this node has published (*drain.RunningJobs).
type RunningJobs interface{ Inherit(jids []string) }

// Parts are what the old process freezes and exports, and what the new one imports.
type Parts struct {
	Self         node.ID
	Publish      PublishPort
	Requests     RequestPort
	Subscription Subscription
	Hub          Hub
	Intake       Intake
	Log          Log
	Clock        Clock
	Jobs         *router.Jobs
	Published    RunningJobs
	Routes       func() router.View
	SetRoutes    func(nodes []router.Node, leader node.ID) // as the old process had them
}

// freezeParts stops everything that requests and publications pass through. The returned function resumes it.
func (p *Parts) freezeParts(ctx context.Context) (thaw func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, freezeTimeout)
	defer cancel()
	var undo []func()
	thaw = func() {
		for i := len(undo) - 1; i >= 0; i-- {
			undo[i]()
		}
	}
	for _, step := range []struct {
		freeze func(context.Context) error
		thaw   func()
	}{ // readers first: publications are still sent until they have stopped
		{p.Requests.Freeze, p.Requests.Thaw},
		{p.Publish.Freeze, p.Publish.Thaw},
		{p.Subscription.Pause, p.Subscription.Unpause},
		{p.Hub.Freeze, p.Hub.Thaw},
	} {
		if err := step.freeze(ctx); err != nil {
			return thaw, err
		}
		undo = append(undo, step.thaw)
	}
	return thaw, nil
}

// export is what frozen parts hand over.
type export struct {
	publish, requests edge.State
	final             finalState
	subscription      int // descriptor; -1: there is none
}

// exportParts exports frozen parts. The new process has consensus as of index since.
func (p *Parts) exportParts(ctx context.Context, since uint64) (x export, err error) {
	var wg sync.WaitGroup
	var publishErr error
	wg.Go(func() { x.publish, publishErr = p.Publish.Export(ctx) })
	var requestsErr, finalErr error
	x.requests, requestsErr = p.Requests.Export(ctx)
	wg.Wait()
	x.final, x.subscription, finalErr = p.exportFinalState(since)
	return x, errors.Join(publishErr, requestsErr, finalErr)
}

// exportFinalState exports everything but the connections of minions.
func (p *Parts) exportFinalState(since uint64) (f finalState, descriptor int, err error) {
	v := p.Log.View()
	if v.Index() != since {
		if f.Snapshot, err = writeSnapshot(v); err != nil {
			return f, -1, err
		}
	}
	f.Clock = p.Clock.Last()
	f.Jobs = listJobs(p.Jobs, finalJobs)
	routes := p.Routes()
	f.Nodes, f.Leader = routes.Nodes, routes.Leader
	f.Hub, f.Recent, f.Intake = p.Hub.Export(), p.Hub.ExportRecent(), p.Intake.Export()
	f.Subscription, descriptor, err = p.Subscription.Export()
	return f, descriptor, err
}

// importBase imports what the old process sends before it freezes.
func (p *Parts) importBase(b base) error {
	if err := p.Log.Preload(bytes.NewReader(b.Snapshot)); err != nil {
		return err
	}
	p.importJobs(b.Jobs)
	return nil
}

func (p *Parts) importJobs(l jobList) {
	l.recordJobs(p.Jobs)
	p.Published.Inherit(l.jobsOf(p.Self))
}

// importFinalState imports what the old process had when it was frozen. The descriptor is that of the subscription.
func (p *Parts) importFinalState(f finalState, descriptors []int) error {
	if len(f.Snapshot) > 0 {
		if err := p.Log.Preload(bytes.NewReader(f.Snapshot)); err != nil {
			return err
		}
	}
	p.Clock.GoOn(f.Clock)
	p.importJobs(f.Jobs)
	p.SetRoutes(f.Nodes, f.Leader)
	if err := errors.Join(p.Hub.Import(f.Hub), p.Hub.ImportRecent(f.Recent), p.Intake.Import(f.Intake)); err != nil {
		return err
	}
	switch {
	case len(descriptors) == 1:
		return p.Subscription.Import(f.Subscription, descriptors[0])
	case len(descriptors) > 1 || len(f.Subscription) > 0:
		return errors.New("unusable subscription to the master")
	}
	return nil
}

// handAnswers ends the parts of the old process after the new one has taken over. Ends of requests in flight go to
// pass.
func (p *Parts) handAnswers(pass func(edge.Answer)) {
	p.Subscription.Hand()
	p.Hub.Hand()
	p.Requests.Hand(pass) // before the publish port, because answers wait
	p.Publish.Hand()
}
