package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/integration/lab"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/zmtp"
)

const (
	floodRate  = 10_000 // refused requests per second that one address wants to send
	floodConns = 50
	floodGoal  = 0.90 // of the throughput that others have without it
	askers     = 16   // connections of minions that ask as fast as they are answered
)

// flood measures what minions get done while one address floods with requests that are refused. What they get done without it is measured
// half before and half after it, so that a machine which grows slower or faster meanwhile tells of neither. The round that warms everything
// up is short.
func (b *bench) flood(ctx context.Context, l *lab.Lab, through *target) error {
	h, err := l.Host(ctx, "flood")
	if err != nil {
		return err
	}
	from := &target{name: "flood", addr: through.addr, from: h}
	var alone, beside, sent, answered, cpuAlone, cpuBeside series
	for round := range b.sizes.rounds + 1 {
		long := b.floodFor
		if round == 0 {
			long = min(long, b.forwardFor)
		}
		b.say("throughput with and without a flood of %s, round %d", long, round)
		calm, calmUsed, err := through.throughput(ctx, long/2)
		if err != nil {
			return err
		}
		f, err := from.startFlood(ctx)
		if err != nil {
			return err
		}
		select { // patience with it has to run out first
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
		f.mark()
		busy, busyUsed, err := through.throughput(ctx, long)
		wrote, heard := f.stop()
		if err != nil {
			return err
		}
		after, afterUsed, err := through.throughput(ctx, long/2)
		if err != nil {
			return err
		}
		calm, calmUsed.daemon = (calm+after)/2, calmUsed.daemon+afterUsed.daemon
		if round > 0 {
			alone.add(calm)
			beside.add(busy)
			sent.add(wrote)
			answered.add(heard)
			cpuAlone.add(micros(calmUsed.daemon) / (calm * long.Seconds()))
			cpuBeside.add(micros(busyUsed.daemon) / (busy * long.Seconds()))
		}
	}
	ratio := beside.over(alone)
	verdict := "met"
	if ratio.median() < floodGoal {
		verdict = "**missed**"
	}
	b.out.table("A flood of refused requests", fmt.Sprintf(
		"%d connections of minions ask the stand-in as fast as they are answered, for %s with the flood and half of that before and after it in each round; "+
			"from one other address %d connections want to send %d refused requests per second (`publish` in clear), beginning a second before. "+
			"The flood comes from the same machine.",
		askers, b.floodFor, floodConns, floodRate),
		[]string{"figure", "without", "with the flood", "ratio", "target", ""}, [][]string{
			{"requests/s of others", alone.show("%.0f"), beside.show("%.0f"), "**" + ratio.show("%.2f") + "**", fmt.Sprintf("≥ %.2f", floodGoal), verdict},
			{"saltclusterd CPU µs per request of others", cpuAlone.show("%.0f"), cpuBeside.show("%.0f"), cpuBeside.over(cpuAlone).show("%.2f"), "", ""},
			{"refused requests/s that got through to be refused", "–", answered.show("%.0f"), "", "", ""},
			{"refused requests/s written", "–", sent.show("%.0f"), "", "", ""},
		})
	return nil
}

// throughput is how many requests per second minions get answered, each connection with one at a time.
func (t *target) throughput(ctx context.Context, long time.Duration) (perSecond float64, u used, err error) {
	bodies := make([][][]byte, askers)
	for i := range bodies {
		all, err := t.seal(cheapCommand, nil, 64) // the same again and again: nothing keeps a nonce
		if err != nil {
			return 0, u, err
		}
		for _, s := range all {
			bodies[i] = append(bodies[i], s.body)
		}
	}
	peers, hangUp, err := t.dialAll(ctx, askers)
	if err != nil {
		return 0, u, err
	}
	defer hangUp()
	var done atomic.Int64
	end := time.Now().Add(long)
	u, err = t.spend(func() error {
		var g errgroup.Group
		for i, p := range peers {
			g.Go(func() error {
				for n := 0; time.Now().Before(end); n++ {
					if _, err := p.ask(bodies[i][n%len(bodies[i])]); err != nil {
						return err
					}
					done.Add(1)
				}
				return nil
			})
		}
		return g.Wait()
	})
	return float64(done.Load()) / long.Seconds(), u, err
}

// floodRun is a flood that goes on.
type floodRun struct {
	cancel      context.CancelFunc
	g           errgroup.Group
	since       time.Time
	sent, heard atomic.Int64
}

// startFlood sends what is refused, steadily on each connection as long as it is taken.
func (t *target) startFlood(ctx context.Context) (*floodRun, error) {
	load, err := saltwire.AppendAny(nil, map[string]any{"cmd": "publish", "fun": "test.ping", "tgt": "*", "arg": []any{}}, saltwire.Wire)
	if err != nil {
		return nil, err
	}
	body := saltwire.AppendEnvelope(nil, saltwire.Envelope{Enc: saltwire.EncClear, Load: load, Version: 3, HasVersion: true})
	peers, hangUp, err := t.dialAll(ctx, floodConns)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &floodRun{cancel: cancel, since: time.Now()}
	context.AfterFunc(ctx, hangUp)
	for _, p := range peers {
		f.g.Go(func() error { f.write(ctx, p.z, body); return nil })
		f.g.Go(func() error { f.read(p.z); return nil })
	}
	return f, nil
}

func (f *floodRun) write(ctx context.Context, z *zmtp.Client, body []byte) {
	tick := time.NewTicker(time.Second * floodConns / floodRate)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if z.WriteMessage(nil, body) != nil {
			return
		}
		f.sent.Add(1)
	}
}

func (f *floodRun) read(z *zmtp.Client) {
	for {
		if _, err := z.ReadMessage(); err != nil {
			return
		}
		f.heard.Add(1)
	}
}

// mark begins to count anew.
func (f *floodRun) mark() {
	f.sent.Store(0)
	f.heard.Store(0)
	f.since = time.Now()
}

// stop ends a flood and tells what it wrote and how much of it was answered, per second.
func (f *floodRun) stop() (sent, heard float64) {
	seconds := time.Since(f.since).Seconds()
	sent, heard = float64(f.sent.Load())/seconds, float64(f.heard.Load())/seconds
	f.cancel()
	_ = f.g.Wait() // its goroutines have no errors
	return sent, heard
}
