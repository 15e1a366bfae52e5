package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/support"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
)

func newTopCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "top",
		Usage: "show the cluster and this node's work continuously; Ctrl-C stops it",
		Description: "The rates are those of this node, from its metrics (option metrics on health_listen, and this host in health_trusted).\n" +
			"If the output is not a terminal, the screens are printed one after the other.",
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "interval", Aliases: []string{"i"}, Value: 2 * time.Second,
				Usage: "refresh every `TIME`, at least half a second"},
			console.WideFlag(),
			&cli.IntFlag{Name: "count", Aliases: []string{"n"}, Usage: "end after `N` screens", DefaultText: "never"},
		},
		Action: console.WithoutArgs(e, runTop),
	})
}

// rates are the counters that top shows as numbers per second, in this order.
var rates = [][2]string{
	{"publications", "saltcluster_fanout_publications_total"}, {"requests", "saltcluster_minion_requests_total"},
	{"returns", "saltcluster_minion_returns_total"}, {"sign-ins", "saltcluster_signin_requests_total"},
	{"refused", "saltcluster_minion_refused_requests_total"},
}

// counters are the sums of metrics at a moment.
type counters struct {
	at   time.Time
	sums map[string]float64
}

func runTop(c *cli.Context, e *console.Env) error {
	if format := c.String("out"); format != "table" {
		return console.Usagef("saltclusterctl status --out json", "top is for people: it has no --out %s", format)
	}
	cfg, err := console.AskAdmin(c, e, (*adminapi.Client).Config)
	if err != nil {
		return err
	}
	metrics := metricsURL(support.OptionsOf(cfg).TextOf("health_listen"))
	e.Waits.Store(true) // the screen is drawn over whatever is said
	tick := time.NewTicker(max(c.Duration("interval"), 500*time.Millisecond))
	defer tick.Stop()
	var before counters
	for n := 1; ; n++ {
		st, err := console.AskAdmin(c, e, (*adminapi.Client).Status)
		if err != nil && n == 1 {
			return err
		}
		if n == 1 {
			defer useAlternateScreen(e, c.Int("count"))()
		}
		s := e.NewScreenOf(c)
		if e.Colour { // a terminal: from its upper left corner, over the last screen
			s.WriteString("\x1b[H\x1b[2J")
		}
		var now counters
		if err != nil { // who watches a restart wants to see its end
			s.Wrapped("", "%s", s.Paint(console.Red, console.Clean(err.Error())))
			s.Wrapped("-> ", "%s", console.Clean(adminapi.HintOf(err)))
		} else {
			now, err = readMetrics(c.Context, metrics)
			topScreen(s, st, time.Now())
			if c.Int("count") != 1 { // rates are between two screens
				ratesLine(s, before, now, err)
			}
		}
		if _, err := e.Stdout.Write(s.Bytes()); err != nil {
			return err
		}
		before = now
		if n == c.Int("count") {
			return nil
		}
		select {
		case <-c.Context.Done():
			return nil // the usual end
		case <-tick.C:
		}
	}
}

// useAlternateScreen keeps what a terminal shows, unless a number of screens was asked for, which are to be read
// afterwards. The function it returns brings it back.
func useAlternateScreen(e *console.Env, count int) (leave func()) {
	if !e.Colour || count > 0 {
		return func() {}
	}
	fmt.Fprint(e.Stdout, "\x1b[?1049h")
	return func() { fmt.Fprint(e.Stdout, "\x1b[?1049l") }
}

func topScreen(s *console.Screen, st adminapi.Status, now time.Time) {
	clusterLine(s, st)
	s.Line("")
	if len(st.Members) > 0 {
		membersTable(s, "", st.Members, now)
		s.Line("")
	}
	var rows [][]console.Cell
	for _, edge := range st.Node.Edges {
		rows = append(rows, []console.Cell{console.Txt(edge.Name), console.Txt(edgeText(edge))})
	}
	if st.Node.Upstream.Address != "" {
		rows = append(rows, upstreamRow(st.Node.Upstream, now))
	}
	if rows = append(rows, returnRows(st.Node.Returns, now)...); len(rows) > 0 {
		s.PrintTable("  ", nil, rows)
		s.Line("")
	}
	printProblems(s, st.Problems)
}

func ratesLine(s *console.Screen, before, now counters, err error) {
	switch {
	case err != nil:
		s.Wrapped("", "%s", s.Paint(console.Yellow, "no rates: "+console.Clean(err.Error())))
	case before.sums == nil:
		s.Line("rates appear with the next screen")
	default:
		var parts []string
		for _, r := range rates {
			per := (now.sums[r[1]] - before.sums[r[1]]) / now.at.Sub(before.at).Seconds()
			parts = append(parts, fmt.Sprintf("%s %.1f/s", r[0], max(per, 0)))
		}
		s.Wrapped(s.Paint(console.Bold, "this node")+"  ", "%s", strings.Join(parts, "  "))
	}
}

// metricsURL is where this host reads the metrics; empty: they are off.
func metricsURL(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port) + "/metrics"
}

// maxMetrics bounds the page, in bytes.
const maxMetrics = 16 << 20

func readMetrics(ctx context.Context, url string) (counters, error) {
	if url == "" {
		return counters{}, errors.New("health_listen is off")
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return counters{}, fmt.Errorf("ask for metrics: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return counters{}, fmt.Errorf("%s cannot be read: %s", url, wording.Cause(err))
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return counters{}, errors.New("the option metrics is off")
	default:
		return counters{}, fmt.Errorf("%s says %s: is this host in health_trusted?", url, resp.Status)
	}
	return counters{time.Now(), sumMetrics(io.LimitReader(resp.Body, maxMetrics))}, nil
}

// sumMetrics adds up the samples of each metric, whatever their labels.
func sumMetrics(r io.Reader) map[string]float64 {
	sums := map[string]float64{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		name := line
		if i := strings.IndexAny(line, "{ "); i >= 0 {
			name = line[:i]
		}
		v, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err == nil && !strings.HasPrefix(line, "#") {
			sums[name] += v
		}
	}
	return sums
}
