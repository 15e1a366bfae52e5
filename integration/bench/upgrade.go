package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	quietTime = time.Second // before and after an upgrade
	// deliveriesPerSecond leaves most of two processors to the upgrade. One message to all is a silence for the probe whatever the
	// rate, some 50 ms for 2,000 on two processors which the subscribers need, too.
	deliveriesPerSecond = 16000
)

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
