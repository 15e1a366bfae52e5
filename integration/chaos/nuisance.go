package chaos

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/integration/play"
	"saltclusterd/sidecar/zmtp"
)

const (
	floodConns   = 16
	floodBytes   = 16 << 10
	deafAsks     = 30 // each, at once
	slowSubs     = 20
	nuisanceWait = 2 * time.Second // before a connection that was cut is made again
)

// nuisance is one accepted minion on each node that does everything a minion must not do: it sends as fast as told,
// asks for files it does not read, and subscribes without reading.
type nuisance struct {
	w           *world
	rate, quiet int

	sent, answered, cut, deaf, deafCut, slow, slowCut atomic.Int64
}

func newNuisance(w *world, c SoakConfig) *nuisance {
	return &nuisance{w: w, rate: c.Rate, quiet: c.Deaf}
}

func (n *nuisance) String() string {
	return fmt.Sprintf("the flooding minion sent %d requests of %d KiB, %d were answered, %d connections cut; %d times answers were "+
		"not read, %d cut; %d subscriptions were not read, %d cut", n.sent.Load(), floodBytes>>10, n.answered.Load(),
		n.cut.Load(),
		n.deaf.Load(), n.deafCut.Load(), n.slow.Load(), n.slowCut.Load())
}

// run ends with ctx.
func (n *nuisance) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	again := func(f func(context.Context, *player) error) {
		for i := range n.w.cluster.Nodes {
			p := n.w.players[i*n.w.cfg.Players] // the first on each node
			wg.Go(func() {
				for ctx.Err() == nil {
					_ = f(ctx, p)
					backoff.Sleep(ctx, nuisanceWait)
				}
			})
		}
	}
	for range floodConns {
		again(n.flood)
	}
	for range n.quiet {
		again(n.ask)
	}
	for range slowSubs {
		again(n.subscribe)
	}
}

// flood sends events and reads the answers, never waiting for one.
func (n *nuisance) flood(ctx context.Context, p *player) error {
	c, stop, err := n.dial(ctx, p, "4506", "DEALER")
	if err != nil {
		return err
	}
	defer stop()
	go func() {
		for {
			if _, err := c.ReadMessage(); err != nil {
				return
			}
			n.answered.Add(1)
		}
	}()
	pause := time.Second * time.Duration(floodConns*len(n.w.cluster.Nodes)) / time.Duration(max(n.rate, 1))
	data := strings.Repeat("x", floodBytes)
	for backoff.Sleep(ctx, pause) {
		body, _, err := p.Seal(p.Secrets(), "_minion_event",
			map[string]any{"tag": "soak/flood", "data": map[string]any{"x": data}})
		if err != nil {
			return err
		}
		if err := c.WriteMessage(nil, body); err != nil {
			n.cut.Add(1)
			return err
		}
		n.sent.Add(1)
	}
	return nil
}

// ask wants large answers and reads none.
func (n *nuisance) ask(ctx context.Context, p *player) error {
	c, stop, err := n.dial(ctx, p, "4506", "DEALER")
	if err != nil {
		return err
	}
	defer stop()
	file := map[string]any{"path": "demo/files/big.bin", "saltenv": "base", "loc": 0}
	for range deafAsks {
		body, _, err := p.Seal(p.Secrets(), "_serve_file", file)
		if err != nil {
			return err
		}
		if err := c.WriteMessage(nil, body); err != nil {
			return err
		}
		n.deaf.Add(1)
	}
	for backoff.Sleep(ctx, time.Second) { // a write finds out that the edge has had enough
		if err := c.Ping(); err != nil {
			n.deafCut.Add(1)
			return err
		}
	}
	return nil
}

// subscribe never reads.
func (n *nuisance) subscribe(ctx context.Context, p *player) error {
	c, stop, err := n.dial(ctx, p, "4505", "SUB")
	if err != nil {
		return err
	}
	defer stop()
	if err := c.Subscribe(nil); err != nil {
		return err
	}
	n.slow.Add(1)
	for backoff.Sleep(ctx, time.Second) {
		if err := c.Ping(); err != nil {
			n.slowCut.Add(1)
			return err
		}
	}
	return nil
}

func (n *nuisance) dial(ctx context.Context, p *player, port, socket string) (*zmtp.Client, func(), error) {
	if p.Secrets() == nil {
		return nil, nil, play.ErrNotAccepted
	}
	c, err := p.Dial(ctx, p.addr, port, socket)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	return c, func() { stop(); c.Close() }, nil
}
