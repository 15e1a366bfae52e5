package main

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/integration/lab"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/zmtp"
)

const (
	probeEvery  = 5 * time.Millisecond
	quietTime   = time.Second // before and after an upgrade
	heardWithin = 30 * time.Second
	// deliveriesPerSecond leaves most of two processors to the upgrade. One message to all is a silence for the probe whatever the
	// rate, some 50 ms for 2,000 on two processors which the subscribers need, too.
	deliveriesPerSecond = 16000
	// unfiltered subscribers hear every probe, so there are few of them; the others take every numbered publication.
	unfiltered = 20
	heard      = "broadcast" // topic of the numbered publications
	probed     = "probe"     // whom the probes are for
)

// probeTopic is what a minion of that name subscribes to when the master filters.
var probeTopic = func() string { sum := sha1.Sum([]byte(probed)); return hex.EncodeToString(sum[:]) }()

var pauseGoals = map[int]float64{2000: 50, 8000: 100} // ms

// upgrade measures what subscribers see of upgrades in place: publications lost, connections lost, and the pause.
func (b *bench) upgrade(ctx context.Context, n *standInNode) error {
	var rows [][]string
	for _, count := range b.upgradeSubscribers {
		b.say("%d upgrades before %d subscribers", b.sizes.upgrades, count)
		r, err := b.upgradeRun(ctx, n, count)
		if err != nil {
			return err
		}
		rows = append(rows, []string{
			strconv.Itoa(count), strconv.Itoa(2 * b.sizes.upgrades), strconv.Itoa(r.deliveries), strconv.Itoa(r.wrong), strconv.Itoa(r.broken),
			r.alone.normal.show("%.1f"), "**" + r.alone.pause.show("%.1f") + "**", r.alone.around.show("%.1f"),
			r.beside.normal.show("%.1f"), r.beside.pause.show("%.1f"), r.beside.around.show("%.1f"),
			r.frozen.show("%.1f"), r.whole.show("%.2f"), fmt.Sprintf("≤ %.0f", pauseGoals[count]), r.verdict(pauseGoals[count]),
		})
	}
	b.out.table("Upgrade in place", fmt.Sprintf(
		"`saltclusterctl upgrade` of a node with a stand-in for the master, before that many connected subscribers. A probe is published every %s "+
			"and goes to one of them, by its topic (and to %d without a filter); in every second upgrade numbered messages go to all besides, %d "+
			"deliveries a second. Wrong: subscribers that did not get exactly what was published, in order, over all upgrades. Pause: the longest "+
			"silence of the probed subscriber that touches the handover itself. Around: its longest of the whole command and the second after "+
			"it, in which two processes share the processors. None: its longest without any upgrade, in the two seconds before. Where all hear "+
			"numbered messages, the silence is that of one message to all, with or without an upgrade: two processors write and read it. The "+
			"target is judged where only the probe is published. Frozen: what the daemon says of the time until the new process served.",
		probeEvery, unfiltered, deliveriesPerSecond),
		[]string{"subscribers", "upgrades", "deliveries", "wrong", "reconnects", "probe alone: none ms", "pause ms", "around ms",
			"and to all: none ms", "pause ms", "around ms", "frozen ms", "command s", "target", ""}, rows)
	return nil
}

type upgradeResult struct {
	deliveries, wrong, broken int
	alone, beside             silences // where the probe is all that is published, and where numbered messages are, too
	frozen, whole             series
}

// silences are the longest of the probed subscriber, in ms.
type silences struct{ normal, pause, around series }

func (r upgradeResult) verdict(goal float64) string {
	if r.wrong+r.broken > 0 {
		return "not met"
	}
	return atMost(r.alone.pause, goal)
}

func (b *bench) upgradeRun(ctx context.Context, n *standInNode, count int) (r upgradeResult, err error) {
	every := time.Duration(count) * time.Second / deliveriesPerSecond
	crowd := &crowd{from: n.through.from, addr: strings.TrimSuffix(n.through.addr, "6") + "5"}
	defer crowd.leave()
	if err := crowd.join(ctx, count); err != nil {
		return r, err
	}
	publishing, stop := context.WithCancel(ctx)
	defer stop()
	sent := make(chan []uint64, 1)
	go func() { sent <- n.standIn.publish(publishing, every) }()
	if !sleep(ctx, quietTime) {
		return r, ctx.Err()
	}
	for i := range 2 * b.sizes.upgrades {
		of := &r.beside
		if n.standIn.probesOnly.Store(i%2 == 1); i%2 == 1 {
			of = &r.alone
		}
		if err := b.upgradeOnce(ctx, n, crowd, of, &r); err != nil {
			return r, err
		}
	}
	stop()
	bodies := <-sent
	crowd.await(ctx, len(bodies))
	r.deliveries, r.wrong, r.broken = crowd.judge(len(bodies))
	if r.wrong+r.broken > 0 {
		b.say("%d published; %s", len(bodies), crowd.counts())
	}
	return r, nil
}

// upgradeOnce measures one upgrade, and the time before it.
func (b *bench) upgradeOnce(ctx context.Context, n *standInNode, crowd *crowd, of *silences, r *upgradeResult) error {
	if !sleep(ctx, quietTime) { // for what is under way
		return ctx.Err()
	}
	crowd.probe.heardOf() // forgets
	if !sleep(ctx, 2*quietTime) {
		return ctx.Err()
	}
	of.normal.add(millis(longest(crowd.probe.heardOf())))
	began := time.Now()
	res, err := n.daemon.Ctl(ctx, "upgrade")
	if err == nil {
		err = res.Err()
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, n.daemon.Tail(20))
	}
	r.whole.add(time.Since(began).Seconds())
	if !sleep(ctx, quietTime) {
		return ctx.Err()
	}
	heard, frozen := crowd.probe.heardOf(), frozenMillis(res.Stdout)
	at, err := handedOver(n.daemon.LogPath())
	if err != nil {
		return err
	}
	of.pause.add(millis(across(heard, at.Add(-time.Duration(frozen*float64(time.Millisecond))), at)))
	of.around.add(millis(longest(heard)))
	r.frozen.add(frozen)
	return nil
}

// frozenMillis reads the handover's duration from what the command prints.
func frozenMillis(text string) float64 {
	_, after, _ := strings.Cut(text, "frozen for ")
	dur, err := time.ParseDuration(strings.Fields(after + " 0")[0])
	if err != nil {
		return 0
	}
	return millis(dur)
}

// handedOver is when a daemon last handed over, by its log.
func handedOver(log string) (at time.Time, err error) {
	text, err := os.ReadFile(log)
	if err != nil {
		return at, err
	}
	i := bytes.LastIndex(text, []byte(`msg="handed over"`))
	if i < 0 {
		return at, errors.New("the log knows of no handover")
	}
	line := text[bytes.LastIndexByte(text[:i], '\n')+1 : i]
	_, stamp, _ := strings.Cut(string(line), "time=")
	stamp, _, _ = strings.Cut(stamp, " ")
	return time.Parse(time.RFC3339Nano, stamp)
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// publish publishes probes and, unless probesOnly, numbered messages until ctx ends, and returns the numbers.
func (s *standIn) publish(ctx context.Context, every time.Duration) (numbers []uint64) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	next := time.Now()
	for ctx.Err() == nil {
		<-tick.C
		s.pub.Publish(edge.Publication{Body: s.publication(0)})
		if time.Now().After(next) {
			next = next.Add(every)
			if s.probesOnly.Load() {
				continue
			}
			numbers = append(numbers, uint64(len(numbers)+1))
			s.pub.Publish(edge.Publication{Body: s.publication(numbers[len(numbers)-1])})
		}
	}
	return numbers
}

// publication is what a master sends for a job of the given number to all, 0: for a probe.
func (s *standIn) publication(number uint64) []byte {
	load := saltwire.AppendMapHeader(nil, 6)
	kind := "glob"
	if number == 0 {
		kind = "list"
	}
	for _, kv := range [][2]string{{"fun", "test.ping"}, {"jid", fmt.Sprintf("20260101%012d", number)}, {"tgt_type", kind}, {"ret", ""}} {
		load = saltwire.AppendRaw(saltwire.AppendRaw(load, kv[0]), kv[1])
	}
	const emptyArray, arrayOfOne = 0x90, 0x91
	if load = saltwire.AppendRaw(load, "tgt"); number == 0 {
		load = saltwire.AppendRaw(append(load, arrayOfOne), probed)
	} else {
		load = saltwire.AppendRaw(load, "*")
	}
	load = append(saltwire.AppendRaw(load, "arg"), emptyArray)
	return saltwire.AppendPub(nil, s.crypticle.Seal(nil, load, nil), nil, "")
}

// crowd is subscribers that note what they hear.
type crowd struct {
	from  *lab.Host
	addr  string
	all   []*listener
	probe *listener
	wg    sync.WaitGroup
}

type listener struct {
	c     net.Conn
	count atomic.Int64  // of what came
	sum   atomic.Uint64 // of everything that came, in order
	here  atomic.Bool   // subscribed
	ended atomic.Bool

	mu       sync.Mutex
	last     time.Time
	silences []silence // of the one that is probed, since it was last asked
	noting   bool
}

// silence is the time between two messages.
type silence struct{ from, until time.Time }

func (s silence) dur() time.Duration { return s.until.Sub(s.from) }

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

// smallRoom is enough for what a subscriber reads at a time: there are thousands of them.
const smallRoom = 4 << 10

func (c *crowd) listen(ctx context.Context, topic string) (*listener, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return nil, err
	}
	l := &listener{c: conn}
	hello := zmtp.AppendReady(zmtp.AppendGreeting(nil), "SUB", "")
	hello = zmtp.AppendSubscribe(hello, []byte(topic))
	if _, err := conn.Write(zmtp.AppendPing(hello, 0, nil)); err != nil { // whose answer comes when the subscription counts
		return nil, errors.Join(err, conn.Close())
	}
	c.wg.Go(func() { l.run() })
	return l, nil
}

// run reads until the connection ends.
func (l *listener) run() {
	defer l.ended.Store(true)
	limits := zmtp.DefaultLimits
	dec := zmtp.NewDecoder(&limits)
	room := make([]byte, smallRoom)
	h := fnv.New64a()
	for {
		n, err := l.c.Read(room)
		if err != nil {
			return
		}
		for in := room[:n]; len(in) > 0; {
			ev, used, err := dec.Next(in)
			if err != nil {
				return
			}
			in = in[used:]
			switch {
			case ev.Kind == zmtp.Command && !l.command(&dec, ev.Body):
				return
			case ev.Kind == zmtp.Frame && !ev.More:
				_, _ = h.Write(ev.Body)
				l.note(h.Sum64())
			}
		}
	}
}

// command answers what must be answered.
func (l *listener) command(dec *zmtp.Decoder, body []byte) bool {
	name, data, err := zmtp.ParseCommand(body)
	switch {
	case err != nil:
		return false
	case string(name) == zmtp.CmdReady:
		dec.SetReady()
	case string(name) == zmtp.CmdPong:
		l.here.Store(true)
	case string(name) == zmtp.CmdPing:
		_, text, err := zmtp.ParsePing(data)
		if err != nil {
			return false
		}
		_, err = l.c.Write(zmtp.AppendPong(nil, text))
		return err == nil
	}
	return true
}

func (l *listener) note(sum uint64) {
	now := time.Now()
	l.sum.Store(sum)
	l.count.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.noting && !l.last.IsZero() {
		l.silences = append(l.silences, silence{l.last, now})
	}
	l.last = now
}

// heardOf is every silence since it was last asked for.
func (l *listener) heardOf() []silence {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.silences
	l.silences, l.noting = nil, true
	return all
}

// longest is the longest of some silences.
func longest(all []silence) (d time.Duration) {
	for _, s := range all {
		d = max(d, s.dur())
	}
	return d
}

// across is the longest of those silences that touch a span of time.
func across(all []silence, from, until time.Time) (d time.Duration) {
	for _, s := range all {
		if s.from.Before(until) && s.until.After(from) {
			d = max(d, s.dur())
		}
	}
	return d
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
