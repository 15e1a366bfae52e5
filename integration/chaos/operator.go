package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/integration/history"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/play"
)

// operator decides about keys all the time, with stock salt-key, on nodes that no fault touches: one new minion after
// the other is accepted, used and deleted, each with some time between.
type operator struct {
	w       *world
	rnd     *rand.Rand
	pause   time.Duration
	made    int
	living  []*play.Minion
	deleted []*play.Minion
}

const (
	keptAlive  = 2 // keys that live at the same time
	keyWithin  = 20 * time.Second
	keyCommand = 60 * time.Second
)

func newOperator(w *world, seed uint64) *operator {
	return &operator{w: w, rnd: rand.New(rand.NewPCG(seed, 0x0b5e)), pause: w.cfg.KeyPause}
}

// work runs until ctx ends.
func (o *operator) work(ctx context.Context) {
	for backoff.Sleep(ctx, o.pause) {
		var err error
		if len(o.living) < keptAlive {
			err = o.admit(ctx)
		} else {
			err = o.dismiss(ctx)
		}
		if err != nil && ctx.Err() == nil {
			o.w.rec.Note("operator: %v", err)
		}
	}
}

// node is one to work on.
func (o *operator) node() (*lab.Node, error) {
	whole := o.w.whole()
	if len(whole) == 0 {
		return nil, errors.New("no node is whole")
	}
	return o.w.node(whole[o.rnd.IntN(len(whole))]), nil
}

// admit lets a new minion ask, accepts it and lets it ask again.
func (o *operator) admit(ctx context.Context) error {
	o.made++
	m, err := play.New(o.w.players[0].Host(), fmt.Sprintf("key%d", o.made))
	if err != nil {
		return err
	}
	n, err := o.node()
	if err != nil {
		return err
	}
	if _, err := m.SignIn(ctx, n.Addr); !errors.Is(err, play.ErrNotAccepted) {
		return fmt.Errorf("the first sign-in at %s: %w", n.Name, err)
	}
	if err := o.see(ctx, n, m.ID, "minions_pre"); err != nil {
		return err
	}
	if o.decide(ctx, n, history.Accept, m.ID) != history.OK {
		return nil
	}
	o.living = append(o.living, m)
	if _, err := m.SignIn(ctx, n.Addr); err != nil {
		return fmt.Errorf("sign in after acceptance: %w", err)
	}
	return nil
}

// dismiss deletes the oldest one.
func (o *operator) dismiss(ctx context.Context) error {
	m := o.living[0]
	n, err := o.node()
	if err != nil {
		return err
	}
	o.living = o.living[1:]
	if o.decide(ctx, n, history.Delete, m.ID) == history.OK {
		o.deleted = append(o.deleted, m)
	}
	return nil
}

// decide runs salt-key. The decision counts as made when more than half of all nodes have it on their disks, for then
// it is in the cluster's history; salt-key itself knows of its own files only.
func (o *operator) decide(ctx context.Context, n *lab.Node, verb history.KeyVerb, id string) history.Outcome {
	op := history.KeyOp{Node: n.Name, Verb: verb, ID: id, Start: time.Now(), Outcome: history.Unknown}
	flag, state := "-a", "minions"
	if verb == history.Delete {
		flag, state = "-d", ""
	}
	cctx, cancel := context.WithTimeout(ctx, keyCommand)
	defer cancel()
	res, err := n.Master.Run(cctx, "salt-key", "-y", flag, id)
	if err == nil {
		err = res.Err()
	}
	if err == nil {
		err = lab.Eventually(ctx, keyWithin, "most nodes to know", func(context.Context) error {
			if verb == history.Delete { // one of many within a minute is held until this is said (docs/how-to/keys.md)
				_, _ = n.Daemon.Ctl(cctx, "keys", "held", "--delete", "--yes")
			}
			has := 0
			for _, n := range o.w.cluster.Nodes {
				there := n.Master.KeyState(o.w.players[0].ID) == "minions" // or its disk has no power
				if there && n.Master.KeyState(id) == state {
					has++
				}
			}
			if 2*has <= len(o.w.cluster.Nodes) {
				return fmt.Errorf("%d do", has)
			}
			return nil
		})
	}
	if op.End = time.Now(); err == nil {
		op.Outcome = history.OK
	} else {
		op.Error = strings.ReplaceAll(err.Error(), "\n", " ")
	}
	o.w.rec.KeyOp(op)
	return op.Outcome
}

func (o *operator) see(ctx context.Context, n *lab.Node, id, state string) error {
	return lab.Eventually(ctx, keyWithin, id+" on "+n.Name, func(context.Context) error {
		if s := n.Master.KeyState(id); s != state {
			return fmt.Errorf("it is in %q", s)
		}
		return nil
	})
}
