package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/support"
	"saltclusterd/integration/check"
	"saltclusterd/sidecar/adminapi"
)

func TestArrange(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", ""},
		{"members", "members"},
		{"--out json members", "members --out json"},
		{"members --out=json", "members --out=json"},
		{"join PEER --timeout 1m --wait=false", "join --timeout 1m --wait=false -- PEER"},
		{"join --secret-file - PEER", "join --secret-file - -- PEER"},
		{"join --wait PEER", "join --wait -- PEER"},
		{"join -- -odd", "join -- -odd"},
		{"config check --config x", "config check --config x"},
		{"--config x config check", "config check --config x"},
		{"help join", "join --help"},
		{"help keys accept", "keys accept --help"},
		{"remove m3 --help", "remove --help"},
		{"help nonsense", "-- nonsense"},
		{"help", "help"},
		{"events --explain -m web1 tag", "events --explain -m web1 -- tag"},
		{"doctor --explain words", "doctor --explain words"},
		{"--message words doctor", "doctor --message words"},
		{"nonsense --out json", "-- nonsense"},
		{"members --out", "members --out"},
		{"join PEER --secret-file", "join --secret-file"},
	}
	app := newApp(&console.Env{})
	for _, tt := range tests {
		check.Equal(t, strings.Join(console.ArrangeArgs(app, strings.Fields(tt.in)), " "), tt.want, tt.in, "became")
	}
}

// A terminal shows what it showed before top; screens that were counted stay on it.
func TestUseAlternateScreen(t *testing.T) {
	for _, tt := range []struct {
		terminal bool
		count    int
		want     string
	}{{true, 0, "\x1b[?1049h\x1b[?1049l"}, {true, 2, ""}, {false, 0, ""}} {
		var out strings.Builder
		useAlternateScreen(&console.Env{Stdout: &out, Colour: tt.terminal}, tt.count)()
		check.Equal(t, out.String(), tt.want, "terminal", tt.terminal, tt.count, "screens")
	}
}

func TestNewApp_UsageAndFlags(t *testing.T) {
	app := newApp(&console.Env{})
	for _, c := range app.Commands {
		if c.Usage == "" {
			t.Errorf("%s has no usage", c.Name)
		}
	}
	if !console.ValuedFlags(app.Commands)["out"] || console.ValuedFlags(app.Commands)["wait"] {
		t.Error("flags with values")
	}
}

// Only parts that are still being copied are shown.
func TestSyncRows_Unfinished(t *testing.T) {
	parts := []adminapi.SyncPart{
		{Part: "keys", State: "syncing", Done: 4200, Total: 10000, Unit: "items", From: "m1"},
		{Part: "roots", State: "syncing", Done: 61, Total: 100, Unit: "bytes"},
		{Part: "grains", State: "done", Done: 7, Total: 7},
		{Part: "tokens", State: "given_up", Error: "nobody is there"},
		{Part: "jobs", State: "syncing", Error: "m1: connection refused"},
	}
	no := false
	if got, want := readyCell(adminapi.Member{Ready: &no,
		Sync: parts}).Text, "no: syncing keys 4200/10000, roots 61 %, jobs"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	rows := syncRows(parts, time.Now())
	if len(rows) != 3 || rows[0][1].Text != "keys 4200/10000 from m1" ||
		rows[2][1].Text != "jobs (m1: connection refused)" {
		t.Errorf("%+v", rows)
	}
	if rows := syncRows(parts[2:4], time.Now()); len(rows) != 0 || adminapi.SyncText(parts[2:4]) != "" {
		t.Errorf("%+v", rows)
	}
}

func TestWaysOfReturns(t *testing.T) {
	native := func(cmd string) adminapi.ReturnPath {
		return adminapi.ReturnPath{Command: cmd, Path: adminapi.PathNative}
	}
	master := func(cmd, reason string) adminapi.ReturnPath {
		return adminapi.ReturnPath{Command: cmd, Path: adminapi.PathMaster, Reason: reason}
	}
	const here = "journaled and written to the job cache here"
	for _, c := range []struct {
		paths []adminapi.ReturnPath
		want  []string
	}{
		{[]adminapi.ReturnPath{native("_return"), native("_mine")}, []string{here}},
		{[]adminapi.ReturnPath{master("_return", "off"), master("_mine", "off")},
			[]string{"_return, _mine go to the salt-master: off"}},
		{
			[]adminapi.ReturnPath{native("_return"), master("_mine", "a"), native("_mine_flush"), master("_mine_get", "a")},
			[]string{here, "_mine goes to the salt-master: a", "_mine_get goes to the salt-master: a"},
		},
		{[]adminapi.ReturnPath{master("_mine", "a"), master("_mine_get", "b")},
			[]string{"_mine goes to the salt-master: a", "_mine_get goes to the salt-master: b"}},
	} {
		var got []string
		for _, row := range returnRows(&adminapi.Returns{Paths: c.paths}, time.Now()) {
			got = append(got, row[1].Text)
		}
		check.EqualSlices(t, got, c.want, c.paths)
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second:                   "0s",
		59 * time.Second:               "59s",
		61 * time.Second:               "1m01s",
		3*time.Hour + 5*time.Minute:    "3h05m",
		50*time.Hour + 59*time.Minute:  "2d02h",
		24 * time.Hour:                 "1d00h",
		time.Hour - time.Millisecond:   "59m59s",
		time.Minute - time.Millisecond: "59s",
	} {
		check.Equal(t, console.FormatAge(d), want, "console.FormatAge(", d, ")")
	}
}

// Tables of nodes and jobs fit into 80 columns: one node is down since yesterday, names are not short.
func TestTablesFitIn80Columns(t *testing.T) {
	now := time.Date(2026, 3, 4, 10, 30, 0, 0, time.UTC)
	subscribers, lag, ready := 12500, uint64(1200), true
	members := []adminapi.Member{
		{ID: "master1", Address: "192.168.100.11:4520", Role: adminapi.RoleLearner, State: adminapi.StateAlive,
			SaltVersion: "3006.28", Version: "0.9.0", Subscribers: &subscribers, Lag: &lag, Ready: &ready},
		{ID: "m2", Address: "10.0.0.12:4520", Role: adminapi.RoleVoter, State: adminapi.StateFailed,
			Since: now.Add(-26 * time.Hour), SaltVersion: "3007.15", Version: "0.9.0"},
	}
	jobs := adminapi.JobList{Jobs: []adminapi.JobRow{{JID: "20260304073000123456", Function: "saltutil.refresh_pillar",
		Target: "G@role:web and not web17*", User: "sudo_ada", Minions: 3015, Returned: 3012, Nodes: []string{"m1", "m2", "m3"}}}}
	s := &console.Screen{Columns: 80}
	membersTable(s, "", members, now)
	jobsScreen(s, jobs, now)
	for line := range strings.Lines(s.String()) {
		if n := utf8.RuneCountInString(strings.TrimSpace(line)); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"failed 1d02h", "20260304073000123456  3h00m", "3012 of 3015"} {
		check.Contains(t, s.String(), want)
	}
	wide := &console.Screen{Wide: true}
	jobsScreen(wide, jobs, now)
	check.Contains(t, wide.String(), "2026-03-04 07:30:00Z", "without the time")
	if !strings.Contains(wide.String(), "saltutil.refresh_pillar  G@role:web and not web17*") ||
		!strings.Contains(wide.String(), "sudo_ada") {
		t.Errorf("with --wide:\n%s", wide.String())
	}
}

func TestColoursDoNotMoveColumns(t *testing.T) {
	rows := [][]console.Cell{{console.Txt("m1"), stateCell(adminapi.Member{State: adminapi.StateFailed}, time.Now()), console.Txt("x")},
		{console.Txt("mönch"), stateCell(adminapi.Member{State: adminapi.StateAlive}, time.Now()), console.Txt("y")}}
	plainScreen, colourScreen := &console.Screen{}, &console.Screen{Colour: true}
	for _, s := range []*console.Screen{plainScreen, colourScreen} {
		s.PrintTable("", []string{"ID", "STATE", "END"}, rows)
	}
	stripped := colourScreen.String()
	for _, tint := range []string{console.Bold, console.Green, console.Red} {
		stripped = strings.ReplaceAll(stripped, "\x1b["+tint+"m", "")
	}
	stripped = strings.ReplaceAll(stripped, "\x1b[0m", "")
	if stripped != plainScreen.String() {
		t.Errorf("with colours:\n%s\nwithout:\n%s", stripped, plainScreen.String())
	}
	check.Contains(t, colourScreen.String(), "\x1b[31mfailed", "no colour at all")
}

func TestSumMetrics(t *testing.T) {
	sums := sumMetrics(strings.NewReader(`# HELP x_total all 7
# TYPE x_total counter
x_total{a="1 2",b="}"} 3
x_total{a="2"} 4e+00
y_seconds 0.5
broken{ nonsense
`))
	if sums["x_total"] != 7 || sums["y_seconds"] != 0.5 {
		t.Errorf("%v", sums)
	}
	for listen, want := range map[string]string{
		"0.0.0.0:4580": "http://127.0.0.1:4580/metrics", "[::]:4580": "http://127.0.0.1:4580/metrics",
		"10.0.0.11:1": "http://10.0.0.11:1/metrics", "": "", ":4580": "http://127.0.0.1:4580/metrics",
	} {
		check.Equal(t, metricsURL(listen), want, listen)
	}
}

func TestScrubber(t *testing.T) {
	s := &support.Scrubber{Known: [][]byte{[]byte("Zm9vYmFy/IGlz")}}
	for in, want := range map[string]string{
		"a Zm9vYmFy/IGlz b": "a [redacted] b",
		"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- x": "[redacted] x",
		`"password": "hunter2hunter2",`:                                          `"password": "[redacted]",`,
		"cluster_secret: abcdefghijkl":                                           "cluster_secret: [redacted]",
		"-----BEGIN PUBLIC KEY-----":                                             "-----BEGIN PUBLIC KEY-----",
		`"tokens": 12345678910`:                                                  `"tokens": 12345678910`,
	} {
		check.Equal(t, string(s.ScrubText([]byte(in))), want, in, "became")
	}
}
