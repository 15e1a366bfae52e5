package chaos

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/integration/history"
)

// RuleMemory is what a soak adds to the rules of a history.
const RuleMemory = "memory stays under the ceiling, and does not grow"

const (
	sampleEvery = time.Second
	scrapeEvery = 5 * time.Second
	growthFrom  = 240 // samples before growth is judged: a heap takes minutes to find its size
)

// gaugesOfQueues are the metrics of the table in docs/contributing/queues.md whose highest value is shown;
// countersOfQueues those whose sum is.
var (
	gaugesOfQueues = []string{
		"saltcluster_edge_held_bytes", "saltcluster_edge_unread_bytes", "saltcluster_edge_in_flight_requests",
		"saltcluster_edge_blocked_subscribers", "saltcluster_edge_connections", "saltcluster_master_queue_requests",
		"saltcluster_fanout_outbox_records", "saltcluster_fanout_outbox_bytes", "saltcluster_minion_write_copies",
		"saltcluster_minion_catching_up_requests", "saltcluster_master_bus_queue_events",
		"saltcluster_consensus_queue_requests",
	}
	countersOfQueues = []string{
		"saltcluster_edge_ended_connections_total", "saltcluster_fanout_missed_records_total",
		"saltcluster_minion_lost_requests_total",
		"saltcluster_master_bus_dropped_events_total", "saltcluster_journal_refused_records_total",
		"saltcluster_master_requests_total",
	}
)

// meter samples memory and metrics of all saltclusterds.
type meter struct {
	w       *world
	ceiling int
	rss     [][]int // MiB, by node
	peak    []int
	high    map[string]float64
}

func newMeter(w *world, ceiling int) *meter {
	n := len(w.cluster.Nodes)
	return &meter{w: w, ceiling: ceiling, rss: make([][]int, n), peak: make([]int, n), high: map[string]float64{}}
}

func (m *meter) run(ctx context.Context) {
	for next := time.Now(); ; {
		m.sample(ctx)
		if time.Now().After(next) {
			m.scrapeAll(ctx)
			next = time.Now().Add(scrapeEvery)
		}
		if !backoff.Sleep(ctx, sampleEvery) {
			return
		}
	}
}

// sample reads the resident memory from /proc; the kernel keeps the peak.
func (m *meter) sample(context.Context) {
	for i, n := range m.w.cluster.Nodes {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.Daemon.PID()))
		if err != nil {
			continue
		}
		m.rss[i] = append(m.rss[i], statusMiB(string(raw), "VmRSS:"))
		m.peak[i] = max(m.peak[i], statusMiB(string(raw), "VmHWM:"))
	}
}

func statusMiB(status, name string) int {
	_, rest, _ := strings.Cut(status, name)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.Atoi(fields[0])
	return kib >> 10
}

// scrapeAll notes what the gauges say; a node that is paused says nothing.
func (m *meter) scrapeAll(ctx context.Context) {
	for _, n := range m.w.cluster.Nodes {
		client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				return n.Dial(ctx, network, addr)
			},
		}}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.Addr+":4580/metrics", nil)
		if err != nil {
			continue
		}
		resp, err := client.Do(req)
		if err != nil {
			continue
		}
		m.read(n.Name, resp.Body)
		resp.Body.Close()
	}
}

// read takes the text format: name{labels} value.
func (m *meter) read(node string, r io.Reader) {
	for s := bufio.NewScanner(r); s.Scan(); {
		series, text, ok := strings.Cut(s.Text(), " ")
		name, _, _ := strings.Cut(series, "{")
		v, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil {
			continue
		}
		switch {
		case slices.Contains(gaugesOfQueues, name):
			m.high[series] = max(m.high[series], v)
		case slices.Contains(countersOfQueues, name) && v > 0:
			m.high[series+" on "+node] = v
		}
	}
}

func (m *meter) report() *SoakReport {
	r := &SoakReport{}
	for i, n := range m.w.cluster.Nodes {
		line := memoryLine(n.Name, m.rss[i], m.peak[i])
		r.Memory = append(r.Memory, line)
		blame := func(format string, args ...any) {
			r.Violations = append(r.Violations, history.Violation{Rule: RuleMemory,
				Detail: n.Name + ": " + fmt.Sprintf(format, args...)})
		}
		if line.Peak > m.ceiling {
			blame("%d MiB, the ceiling is %d", line.Peak, m.ceiling)
		}
		if line.Samples >= growthFrom && line.Late > line.Early*5/4+16 {
			blame("grew from %d to %d MiB", line.Early, line.Late)
		}
		if line.Samples == 0 {
			blame("not seen")
		}
	}
	var names []string
	for name := range m.high {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		r.Queues = append(r.Queues, QueueLine{name, m.high[name]})
	}
	return r
}

func memoryLine(node string, rss []int, peak int) MemoryLine {
	l := MemoryLine{Node: node, Peak: peak, Samples: len(rss)}
	if len(rss) == 0 {
		return l
	}
	quarter := len(rss) / 4
	l.Start, l.Early, l.Late = rss[0], median(rss[quarter:2*quarter+1]), median(rss[len(rss)-quarter-1:])
	return l
}

func median(v []int) int {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
