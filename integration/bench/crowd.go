package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/integration/lab"
)

const (
	heardWithin = 30 * time.Second
	// unfiltered subscribers hear every probe, so there are few of them; the others take every numbered publication.
	unfiltered = 20
)

// crowd is subscribers that note what they hear.
type crowd struct {
	from  *lab.Host
	addr  string
	all   []*listener
	probe *listener
	wg    sync.WaitGroup
}

// join brings count subscribers and the one that is probed.
func (c *crowd) join(ctx context.Context, count int) error {
	c.all = make([]*listener, count)
	var g errgroup.Group
	for first := range joiners {
		g.Go(func() error {
			return c.from.Do(func() (err error) {
				for i := first; i < count && err == nil; i += joiners {
					topic := heard
					if i < unfiltered {
						topic = ""
					}
					c.all[i], err = c.listen(ctx, topic)
				}
				return err
			})
		})
	}
	err := g.Wait()
	if err == nil {
		err = c.from.Do(func() (err error) { c.probe, err = c.listen(ctx, probeTopic); return err })
	}
	if err != nil {
		return err
	}
	return lab.Eventually(ctx, startWithin, "all to be subscribed", func(context.Context) error {
		for _, l := range append(c.all, c.probe) {
			if !l.here.Load() {
				return errors.New("not yet")
			}
		}
		return nil
	})
}

// await waits, for a while, until everybody has heard as much as was published.
func (c *crowd) await(ctx context.Context, published int) {
	_ = lab.Eventually(ctx, heardWithin, "all to have heard everything", func(context.Context) error {
		for _, l := range c.all[unfiltered:] {
			if l.count.Load() < int64(published) {
				return errors.New("not yet")
			}
		}
		return nil
	})
	sleep(ctx, quietTime) // for what is too many
}

// judge compares what everybody heard with what was published, and with what the others heard.
func (c *crowd) judge(published int) (deliveries, wrong, broken int) {
	var like, likeAll *listener
	for i, l := range c.all {
		deliveries += int(l.count.Load())
		if l.ended.Load() {
			broken++
		}
		same := &like
		if i < unfiltered {
			same = &likeAll
		}
		if *same == nil {
			*same = l
		}
		if l.sum.Load() != (*same).sum.Load() || i >= unfiltered && l.count.Load() != int64(published) {
			wrong++
		}
	}
	return deliveries, wrong, broken
}

// counts says how many subscribers got how many publications.
func (c *crowd) counts() string {
	n := map[int64]int{}
	for _, l := range c.all[unfiltered:] {
		n[l.count.Load()]++
	}
	return fmt.Sprint("subscribers by what they got: ", n)
}

func (c *crowd) leave() {
	for _, l := range append(c.all, c.probe) {
		if l != nil {
			_ = l.c.Close()
		}
	}
	c.wg.Wait()
}
