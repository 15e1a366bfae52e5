package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/integration/herd"
	"saltclusterd/integration/lab"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/zmtp"
)

// target is something that minions talk to: a bare master, or one with saltclusterd before it.
type target struct {
	name   string
	addr   string    // of the request port
	from   *lab.Host // where the load comes from
	daemon *lab.Process
	master *lab.Process
	salt   *lab.Master         // the same, when it is a real one
	creds  []*herd.Credentials // of each minion, after enroll
	socket string              // of the daemon, for saltclusterctl
}

// used is CPU time.
type used struct{ daemon, master time.Duration }

func (u used) sum() time.Duration { return u.daemon + u.master }

func (u used) minus(o used) used { return used{u.daemon - o.daemon, u.master - o.master} }

// cpu tells what the target has used so far.
func (t *target) cpu() (u used, err error) {
	if t.daemon != nil {
		if u.daemon, err = processCPU(t.daemon); err != nil {
			return u, err
		}
	}
	if t.master != nil {
		u.master, err = processCPU(t.master)
	}
	return u, err
}

// processCPU counts from the lab's supervisor down, which adopts what a master leaves behind.
func processCPU(p *lab.Process) (time.Duration, error) {
	s, err := readStat(p.PID())
	if err != nil {
		return 0, fmt.Errorf("%s: %w", p, err)
	}
	return treeCPU(s.parent)
}

// spend runs f and tells what the target used meanwhile.
func (t *target) spend(f func() error) (used, error) {
	before, err := t.cpu()
	if err != nil {
		return used{}, err
	}
	if err := f(); err != nil {
		return used{}, fmt.Errorf("%s: %w", t.name, err)
	}
	after, err := t.cpu()
	return after.minus(before), err
}

// peer is one connection of a minion to the request port, with one request at a time as all Salt versions have it.
type peer struct{ z *zmtp.Client }

const answerWithin = 30 * time.Second

func (t *target) dial(ctx context.Context) (*peer, error) {
	c, err := t.from.Dial(ctx, "tcp", t.addr)
	if err != nil {
		return nil, err
	}
	z, err := zmtp.NewClient(ctx, c, zmtp.ClientOptions{SocketType: "DEALER", Heartbeat: answerWithin, HeartbeatTimeout: answerWithin})
	if err != nil {
		return nil, err
	}
	return &peer{z}, nil
}

// dialAll opens n connections; closing them is the caller's.
func (t *target) dialAll(ctx context.Context, n int) ([]*peer, func(), error) {
	var all []*peer
	closeAll := func() {
		for _, p := range all {
			_ = p.z.Close()
		}
	}
	for range n {
		p, err := t.dial(ctx)
		if err != nil {
			closeAll()
			return nil, nil, fmt.Errorf("connect to %s: %w", t.name, err)
		}
		all = append(all, p)
	}
	return all, closeAll, nil
}

// hangUpAfter ends whoever waits for an answer when ctx ends.
func hangUpAfter(ctx context.Context, peers []*peer) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		for _, p := range peers {
			_ = p.z.Close()
		}
	})
}

// ask sends a request and waits for its reply.
func (p *peer) ask(body []byte) ([]byte, error) {
	if err := p.z.WriteMessage([]byte{}, body); err != nil {
		return nil, err
	}
	parts, err := p.z.ReadMessage()
	if err != nil {
		return nil, err
	}
	return parts[len(parts)-1], nil
}

// enroll signs every minion in once, and waits until the target can do that.
func (t *target) enroll(ctx context.Context, minions []*herd.Identity) error {
	t.creds = nil
	var master *saltcrypt.PublicKey
	for _, m := range minions {
		err := lab.Eventually(ctx, time.Minute, m.ID+" to be let in by "+t.name, func(ctx context.Context) error {
			return t.enrollOne(ctx, m, master)
		})
		if err != nil {
			return err
		}
		master = t.creds[0].Master
	}
	return nil
}

func (t *target) enrollOne(ctx context.Context, m *herd.Identity, master *saltcrypt.PublicKey) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	asked, err := m.SignIn(master)
	if err != nil {
		return err
	}
	s := &signIn{SignIn: asked}
	if err := t.signIn(ctx, s); err != nil {
		return err
	}
	c, err := s.check(master)
	if err == nil {
		t.creds = append(t.creds, c)
	}
	return err
}

// prepare makes count sign-ins, of each minion in turn.
func (t *target) prepare(minions []*herd.Identity, count int) ([]*signIn, error) {
	all := make([]*signIn, count)
	for i := range all {
		asked, err := minions[i%len(minions)].SignIn(t.creds[0].Master)
		if err != nil {
			return nil, err
		}
		all[i] = &signIn{SignIn: asked}
	}
	return all, nil
}

// signIns sends them, so many at a time, each over a connection of its own as stock minions do (salt/crypt.py:AsyncAuth.
// _authenticate opens a channel and closes it). The replies are not looked at yet.
func (t *target) signIns(ctx context.Context, all []*signIn, atATime int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*answerWithin)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atATime)
	for _, s := range all {
		g.Go(func() error { return t.signIn(ctx, s) })
	}
	return g.Wait()
}

func (t *target) signIn(ctx context.Context, s *signIn) error {
	p, err := t.dial(ctx)
	if err != nil {
		return err
	}
	defer p.z.Close()
	defer hangUpAfter(ctx, []*peer{p})()
	s.reply, err = p.ask(s.Body())
	return err
}

// askMany has minions in turn send count requests of one command, so many at a time over as many connections, and tells what the target used.
// Then each answer is checked.
func (t *target) askMany(
	ctx context.Context, cmd string, count, atATime int, fields func(i int) map[string]any, check func(*sealed) error,
) (used, error) {
	all := make([]*sealed, count)
	for i := range all {
		c := t.creds[i%len(t.creds)]
		body, nonce, err := c.Request(cmd, fields(i))
		if err != nil {
			return used{}, err
		}
		all[i] = &sealed{by: c, body: body, nonce: nonce}
	}
	peers, hangUp, err := t.dialAll(ctx, atATime)
	if err != nil {
		return used{}, err
	}
	defer hangUp()
	u, err := t.spend(func() error {
		g, ctx := errgroup.WithContext(ctx)
		defer hangUpAfter(ctx, peers)()
		for n, p := range peers {
			g.Go(func() (err error) {
				for i := n; i < len(all) && err == nil; i += len(peers) {
					all[i].reply, err = p.ask(all[i].body)
				}
				return err
			})
		}
		return g.Wait()
	})
	if err != nil {
		return u, err
	}
	for _, s := range all {
		if err := check(s); err != nil {
			return u, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return u, nil
}
