package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/integration/herd"
	"saltclusterd/integration/lab"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/zmtp"
)

const (
	startWithin  = 3 * time.Minute
	answerWithin = 30 * time.Second
	startedFor   = 10 * time.Second // until a master's own work at its start is done

	fleet   = 1000 // accepted keys of minions that do not play
	atATime = 4    // sign-ins and requests under way: enough to keep a master's workers busy
)

// versions of Salt whose masters are measured.
var versions = []string{"3006.28", "3008.3"}

// target is what minions talk to: a stock master alone, or one with saltclusterd in front.
type target struct {
	name   string
	host   *lab.Host
	addr   string    // of the request port
	from   *lab.Host // of the load
	salt   *lab.Master
	daemon *lab.Daemon // nil: alone

	version string
	minions []*herd.Identity
	creds   []*herd.Credentials // of each minion, after enroll
}

// newTarget lays out a master, alone or behind saltclusterd, and starts nothing.
func newTarget(ctx context.Context, l *lab.Lab, version string, alone bool) (t *target, err error) {
	t = &target{version: version, name: version + " behind saltclusterd"}
	name := "ours"
	if alone {
		name, t.name = "bare", version+" alone"
	}
	if t.host, err = l.Host(ctx, name); err != nil {
		return nil, err
	}
	if t.from, err = l.Host(ctx, "load"); err != nil {
		return nil, err
	}
	t.addr = t.host.Addr + ":4506"
	listen := t.host.Local
	if alone {
		listen = t.host.Addr
	}
	if t.salt, err = t.host.NewMaster(version, listen); err != nil || alone {
		return t, err
	}
	t.daemon, err = t.salt.NewDaemon(quiet)
	return t, err
}

// quiet is how saltclusterd is configured, besides the lab's own settings.
var quiet = lab.Settings{"log_level": "warning"}

// accept puts keys into the directory of accepted ones, as salt-key does. The master must not run yet.
func (t *target) accept(key herd.Key, ids ...string) error {
	return herd.Accept(filepath.Join(t.salt.PKIDir(), "minions"), key, ids...)
}

// start starts the master, unless a stand-in is in its place, and founds a cluster of one.
func (t *target) start(ctx context.Context, master bool) error {
	if master {
		if err := t.salt.Start(ctx); err != nil {
			return err
		}
		if err := t.salt.WaitReady(ctx, startWithin); err != nil || t.daemon == nil {
			return err
		}
	}
	if err := t.daemon.Start(ctx); err != nil {
		return err
	}
	if err := t.daemon.WaitReady(ctx, startWithin); err != nil {
		return err
	}
	if err := t.daemon.Bootstrap(ctx); err != nil {
		return fmt.Errorf("bootstrap: %w\n%s", err, t.daemon.Tail(15))
	}
	return t.daemon.Serving(ctx, startWithin)
}

// versus starts a master of each version alone and the same behind saltclusterd, in one lab, signs played minions in at
// both, and calls f.
func (b *bench) versus(
	ctx context.Context, versions []string, f func(ctx context.Context, bare, ours *target) error,
) error {
	for _, version := range versions {
		err := b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
			b.say("Salt %s, alone and behind saltclusterd", version)
			var both [2]*target
			for i := range both {
				t, err := newTarget(ctx, l, version, i == 0)
				if err != nil {
					return err
				}
				if err := t.play(pick(b, 24, 8)); err != nil {
					return err
				}
				if err := t.start(ctx, true); err != nil {
					return err
				}
				if err := t.enroll(ctx); err != nil {
					return err
				}
				both[i] = t
			}
			if err := sleep(ctx, startedFor); err != nil {
				return err
			}
			return f(ctx, both[0], both[1])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// play makes minions that are played, with accepted keys, and those of a fleet that does not play.
func (t *target) play(n int) error {
	key, err := herd.NewFastKey()
	if err != nil {
		return err
	}
	var ids []string
	for i := range n {
		m, err := herd.NewIdentity(fmt.Sprintf("bench%d", i), key)
		if err != nil {
			return err
		}
		t.minions, ids = append(t.minions, m), append(ids, m.ID)
	}
	for i := range fleet {
		ids = append(ids, fmt.Sprintf("idle%d", i))
	}
	return t.accept(key, ids...)
}

// used is CPU time.
type used struct{ daemon, master time.Duration }

// cpu returns what the target has used so far.
func (t *target) cpu() (u used, err error) {
	if t.daemon != nil {
		if u.daemon, err = treeCPU(t.daemon.Process); err != nil {
			return u, err
		}
	}
	if t.salt != nil && t.salt.Running() { // else a stand-in
		u.master, err = treeCPU(t.salt.Process)
	}
	return u, err
}

// spend runs f and returns what the target used meanwhile.
func (t *target) spend(f func() error) (u used, err error) {
	before, err := t.cpu()
	if err != nil {
		return u, err
	}
	if err := f(); err != nil {
		return u, err
	}
	after, err := t.cpu()
	return used{after.daemon - before.daemon, after.master - before.master}, err
}

// peer is a minion's connection to the request port, with one request at a time as all Salt versions have it.
type peer struct{ z *zmtp.Client }

func (t *target) dial(ctx context.Context) (*peer, error) {
	c, err := t.from.Dial(ctx, "tcp", t.addr)
	if err != nil {
		return nil, err
	}
	z, err := zmtp.NewClient(ctx, c, zmtp.ClientOptions{
		SocketType: "DEALER", Heartbeat: answerWithin, HeartbeatTimeout: answerWithin,
	})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = z.Close() })
	return &peer{z}, nil
}

// dialAll opens n connections, which end with ctx.
func (t *target) dialAll(ctx context.Context, n int) (all []*peer, err error) {
	for range n {
		p, err := t.dial(ctx)
		if err != nil {
			return nil, fmt.Errorf("connect to %s: %w", t.name, err)
		}
		all = append(all, p)
	}
	return all, nil
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
func (t *target) enroll(ctx context.Context) error {
	var master *saltcrypt.PublicKey
	for _, m := range t.minions {
		err := lab.Eventually(ctx, time.Minute, m.ID+" to be let in by "+t.name, func(ctx context.Context) error {
			s, err := m.SignIn(master)
			if err != nil {
				return err
			}
			reply, err := t.signIn(ctx, s)
			if err != nil {
				return err
			}
			c, err := check(s, reply, master)
			if err == nil {
				t.creds = append(t.creds, c)
			}
			return err
		})
		if err != nil {
			return err
		}
		master = t.creds[0].Master
	}
	return nil
}

// signIn asks over a connection of its own, as stock minions do (salt/crypt.py:AsyncAuth._authenticate).
func (t *target) signIn(ctx context.Context, s *herd.SignIn) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	p, err := t.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer p.z.Close()
	return p.ask(s.Body())
}

// check does with a reply all that a minion does with it.
func check(s *herd.SignIn, reply []byte, known *saltcrypt.PublicKey) (*herd.Credentials, error) {
	outcome, c, err := s.Check(reply, known)
	if err == nil && c == nil {
		err = fmt.Errorf("%w: %s", herd.ErrReply, outcome)
	}
	return c, err
}

// request is one that is ready to be sent, and its answer.
type request struct {
	by    *herd.Credentials
	body  []byte
	nonce string
	reply []byte
	due   time.Time
	took  time.Duration // from due to the reply, including the wait for a free connection
}

// load is requests of minions in turn over some connections.
type load struct {
	cmd       string
	count     int
	conns     int
	perSecond int // 0: as fast as they are answered
	fields    func(i int) map[string]any
	least     int // bytes of an answer
}

// ask sends a load, returns what the target used meanwhile and how long each answer took, and opens every answer.
func (t *target) ask(ctx context.Context, l load) (u used, took []time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := make([]*request, l.count)
	for i := range all {
		r := &request{by: t.creds[i%len(t.creds)]}
		if r.body, r.nonce, err = r.by.Request(l.cmd, l.fields(i)); err != nil {
			return u, nil, err
		}
		all[i] = r
	}
	peers, err := t.dialAll(ctx, l.conns)
	if err != nil {
		return u, nil, err
	}
	if u, err = t.spend(func() error { return l.send(ctx, cancel, peers, all) }); err != nil {
		return u, nil, fmt.Errorf("%s: %w", t.name, err)
	}
	for _, r := range all {
		plain, err := r.by.Open(r.reply, r.nonce)
		if err == nil && len(plain) < l.least {
			err = fmt.Errorf("%s answered with %d bytes", l.cmd, len(plain))
		}
		if err != nil {
			return u, nil, fmt.Errorf("%s: %w", t.name, err)
		}
		took = append(took, r.took)
	}
	return u, took, nil
}

// send returns when all are answered. At a rate a request does not wait for the answers of earlier ones.
func (l load) send(ctx context.Context, cancel func(), peers []*peer, all []*request) error {
	timeout := time.AfterFunc(2*answerWithin, cancel)
	defer timeout.Stop()
	due := make(chan *request, len(all))
	var g errgroup.Group
	for _, p := range peers {
		g.Go(func() (err error) {
			for r := range due {
				if r.reply, err = p.ask(r.body); err != nil {
					cancel() // which ends the others
					return err
				}
				r.took = time.Since(r.due)
			}
			return nil
		})
	}
	start := time.Now()
	for i, r := range all {
		r.due = start
		if l.perSecond > 0 {
			r.due = start.Add(time.Duration(i+1) * time.Second / time.Duration(l.perSecond))
			time.Sleep(time.Until(r.due))
		}
		due <- r
	}
	close(due)
	return errors.Join(g.Wait(), ctx.Err())
}
