package hostile

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"saltclusterd/integration/lab"
)

// life is a process as it was.
type life struct {
	p    *lab.Process
	pid  int
	base int64 // bytes in memory at the beginning
	most int64
}

func (w *world) lives() (all []*life) {
	for _, n := range w.cluster.Nodes {
		for _, p := range []*lab.Process{n.Daemon.Process, n.Master.Process} {
			l := &life{p: p, pid: p.PID()}
			l.base = resident(l.pid)
			all = append(all, l)
		}
	}
	return all
}

// resident is how much memory a process has, in bytes; 0 when there is none of that id.
func resident(pid int) int64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// measure follows memory until ctx ends.
func (w *world) measure(ctx context.Context, all []*life) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		for _, l := range all {
			l.most = max(l.most, resident(l.pid))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// judgeLives says what became of the processes.
func (w *world) judgeLives(all []*life) {
	for _, l := range all {
		if pid := l.p.PID(); pid != l.pid || !l.p.Running() {
			w.book.violated("processes", "", "%s was %d and is %d now", l.p, l.pid, pid)
		}
		grown := l.most - l.base
		w.book.note("%s: %d MiB at first, %d MiB at most", l.p, l.base>>20, l.most>>20)
		if l.p.Name == "saltclusterd" && grown > w.cfg.Memory {
			w.book.violated("memory", "", "%s has grown by %d MiB", l.p, grown>>20)
		}
	}
}

// ping has the masters in turn ask the other minions until ctx ends. One round that fails may be a minion that signs in
// again just then; two in a row are not.
func (w *world) ping(ctx context.Context) {
	rounds, failed := 0, ""
	for i := 0; ctx.Err() == nil; i++ {
		n := w.cluster.Nodes[i%len(w.cluster.Nodes)]
		got, err := n.Master.Pub(ctx, w.cfg.Target, "test.ping")
		if err == nil {
			err = lab.AnsweredBy(got, w.scene.others...)
		}
		switch rounds++; {
		case ctx.Err() != nil:
		case err == nil:
			failed = ""
		case failed != "":
			w.book.violated("minions", "", "twice in a row: %s; %s: %v", failed, n.Name, err)
			failed = ""
		default:
			failed = fmt.Sprintf("%s: %v", n.Name, err)
			w.book.note("a round of test.ping failed: %s", failed)
		}
	}
	w.book.note("%d rounds of test.ping", rounds)
}
