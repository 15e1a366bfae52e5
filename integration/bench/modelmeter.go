package main

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"saltclusterd/integration/herd"
	"saltclusterd/integration/lab"
)

// meter looks many times a second at what CPU the processes of a cluster use, by group, and the whole machine: what others use meanwhile
// is not there for the cluster, and the model has to know. So it has how fast the processors are.
type meter struct {
	groups map[string][]int // processes
	cpus   int

	mu    sync.Mutex
	looks []meterLook
	last  map[int]time.Duration // of each process, when it was seen last: what one has used that was killed stays used
	work  *piece
	stop  chan struct{}
	ended sync.WaitGroup
}

type meterLook struct {
	at   time.Time
	busy time.Duration // all processors
	ours map[string]time.Duration
	pace time.Duration
}

const meterEvery = 20 * time.Millisecond

// startMeter finds the processes below those of the lab, which must not start others that matter.
func startMeter(cpus int, groups map[string][]*lab.Process) (*meter, error) {
	m := &meter{groups: map[string][]int{}, cpus: cpus, last: map[int]time.Duration{}, work: newPiece(), stop: make(chan struct{})}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	all := map[int]stat{}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if s, err := readStat(pid); err == nil {
				all[pid] = s
			}
		}
	}
	for name, ps := range groups {
		for _, p := range ps {
			root := all[p.PID()].parent // the lab's supervisor
			for pid := range all {
				if below(all, pid, root) {
					m.groups[name] = append(m.groups[name], pid)
				}
			}
		}
	}
	m.look()
	m.ended.Go(func() {
		t := time.NewTicker(meterEvery)
		defer t.Stop()
		for {
			select {
			case <-m.stop:
				m.look()
				return
			case <-t.C:
				m.look()
			}
		}
	})
	return m, nil
}

// end stops looking.
func (m *meter) end() {
	close(m.stop)
	m.ended.Wait()
}

func (m *meter) look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := meterLook{at: time.Now(), busy: busyTime(), ours: map[string]time.Duration{}}
	for g, pids := range m.groups {
		for _, pid := range pids {
			if d, err := ownCPU(pid); err == nil {
				m.last[pid] = d
			}
			l.ours[g] += m.last[pid]
		}
	}
	l.ours["minions"], _ = herd.CPU() // with that of looking
	l.pace = m.work.take()
	m.looks = append(m.looks, l)
}

// at returns the last look before a time, or the first.
func (m *meter) at(t time.Time) meterLook {
	m.mu.Lock()
	defer m.mu.Unlock()
	best := m.looks[0]
	for _, l := range m.looks {
		if l.at.After(t) {
			break
		}
		best = l
	}
	return best
}

// used is what the groups have used between two times.
func (m *meter) used(from, to time.Time) map[string]time.Duration {
	a, b := m.at(from), m.at(to)
	out := map[string]time.Duration{}
	for g, d := range b.ours {
		out[g] = max(0, d-a.ours[g])
	}
	return out
}

// beyondIdle is what the groups have used between two times, s, beyond what they use when nothing is asked of them, as from calm to asked.
func (m *meter) beyondIdle(calm, asked, from, to time.Time) map[string]float64 {
	idle, out := m.used(calm, asked), map[string]float64{}
	for g, d := range m.used(from, to) {
		out[g] = max(0, d.Seconds()-idle[g].Seconds()*to.Sub(from).Seconds()/asked.Sub(calm).Seconds())
	}
	return out
}

// share is the part of the machine that others have left between two times.
func (m *meter) share(from, to time.Time) float64 {
	a, b := m.at(from), m.at(to.Add(meterEvery))
	others := b.busy - a.busy
	for g, d := range b.ours {
		others -= d - a.ours[g]
	}
	all := time.Duration(m.cpus) * b.at.Sub(a.at)
	if all <= 0 {
		return 1
	}
	return min(1, max(0.05, 1-float64(others)/float64(all)))
}

// busyTime is what all processors have worked, for whomever.
func busyTime() time.Duration {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := bytes.Cut(raw, []byte("\n"))
	return busyOf(string(line))
}

// busyOf adds up the first line of /proc/stat: user nice system idle iowait irq softirq steal.
func busyOf(line string) (sum time.Duration) {
	for i, f := range strings.Fields(line) {
		n, err := strconv.ParseInt(f, 10, 64)
		if err == nil && i <= 8 && i != 4 && i != 5 {
			sum += time.Duration(n) * tick
		}
	}
	return sum
}
