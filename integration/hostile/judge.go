package hostile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"saltclusterd/integration/lab"
)

// sight is everything as it was before.
type sight struct {
	lives   []*life
	files   []census
	keys    []map[string]string // decided about
	offered map[string]string   // on the first node
}

func (w *world) look() (*sight, error) {
	s := &sight{lives: w.lives()}
	for _, n := range w.cluster.Nodes {
		c, err := take(n.Dir())
		if err != nil {
			return nil, fmt.Errorf("look at the files of %s: %w", n.Name, err)
		}
		k, err := keysIn(n, decided)
		if err != nil {
			return nil, fmt.Errorf("look at the keys of %s: %w", n.Name, err)
		}
		s.files, s.keys = append(s.files, c), append(s.keys, k)
	}
	var err error
	s.offered, err = keysIn(w.cluster.Nodes[0], offered)
	return s, err
}

// settle waits after the attack until the other minions answer every master: then nothing of it is under way.
func (w *world) settle(ctx context.Context) error {
	for _, n := range w.cluster.Nodes {
		err := lab.Eventually(ctx, 2*time.Minute, "the minions to answer "+n.Name, func(ctx context.Context) error {
			got, err := n.Master.Pub(ctx, w.cfg.Target, "test.ping")
			if err != nil {
				return err
			}
			return lab.AnsweredBy(got, w.scene.others...)
		})
		if err != nil {
			w.book.violated("minions", "", "after the attack: %v", err)
		}
	}
	return ctx.Err()
}

func (w *world) judge(ctx context.Context, before *sight) error {
	w.judgeLives(before.lives)
	errs := []error{w.judgeOutside()}
	for i, n := range w.cluster.Nodes {
		errs = append(errs, w.judgeFiles(n, before.files[i]), w.judgeJobs(n), w.judgeKeys(n, before.keys[i]))
	}
	return errors.Join(append(errs, w.leave(ctx, before))...)
}

// leave removes what may be left of an attack: keys that were offered, and those of the two minions. With Revoke the
// minion first removes its own key itself, and no other key may go.
func (w *world) leave(ctx context.Context, before *sight) error {
	errs := []error{w.withdraw(ctx, before.offered)}
	id := w.scene.own
	mine := []string{filepath.Join("minions", id), filepath.Join("minions", id+"-robbed")}
	if w.cfg.Revoke {
		w.who.say(ctx, &Request{Cmd: revokeAuth.cmd, Class: revokeAuth.class,
			fields: []entry{pair("cmd", text(revokeAuth.cmd))}})
		errs = append(errs, w.without(ctx, slices.Values(mine[:1])))
		for i, n := range w.cluster.Nodes {
			delete(before.keys[i], mine[0])
			errs = append(errs, w.judgeKeys(n, before.keys[i]))
		}
	}
	for _, path := range mine {
		err := os.Remove(filepath.Join(w.cluster.Nodes[0].Master.PKIDir(), path))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	errs = append(errs, w.without(ctx, slices.Values(mine)))
	return errors.Join(errs...)
}
