package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/doctor"
	"saltclusterd/cmd/saltclusterctl/support"
	"saltclusterd/sidecar/adminapi"
)

// longStatus is a cluster whose ids, addresses and texts are long, and in which much is wrong.
func longStatus(now time.Time) adminapi.Status {
	st := healthy().status
	st.Cluster.ID, st.Cluster.Leader = "production-frankfurt-01", "salt-master-1.prod.example.com"
	no, minions := false, 123456
	for i := range st.Members {
		m := &st.Members[i]
		m.ID, m.Version = fmt.Sprintf("salt-master-%d.prod.example.com", i+1), "0.9.0-rc1+20261129"
		m.Address, m.Subscribers = fmt.Sprintf("[2001:db8:1234:5678:9abc:def0:1234:%d]:14520", i), &minions
	}
	st.Members[1].Ready, st.Members[1].Reasons = &no, []string{"master", "consensus", "clock"}
	st.Members[2].State, st.Members[2].Since = adminapi.StateFailed, now.Add(-26*time.Hour)
	st.Node.ID, st.Node.Version = st.Members[0].ID, st.Members[0].Version
	st.Node.Edges[0].Addresses = []string{"[2001:db8::1]:4505", "192.168.100.11:4505", "10.123.123.123:4505"}
	st.Node.Upstream.Up, st.Node.Upstream.Error = false, "connection refused by the salt-master, which listens elsewhere"
	st.Node.Reasons = []adminapi.Reason{{Check: "master", Level: adminapi.LevelFail, Message: strings.Repeat("it does not answer ", 6)}}
	st.Problems = []adminapi.Problem{{Level: adminapi.LevelFail, Node: st.Node.ID, Message: strings.Repeat("it does not answer ", 8),
		Hint: "start it with systemctl start salt-master; " + strings.Repeat("its log says why it ended ", 5)}}
	return st
}

// longScreens are the screens that must fit into a terminal, with long texts.
func longScreens(now time.Time) map[string]func(*console.Screen) {
	st := longStatus(now)
	jobs := adminapi.JobList{Missing: []string{st.Members[2].ID, st.Members[1].ID, "salt-master-4.prod.example.com"},
		Jobs: []adminapi.JobRow{{JID: "20260304073000123456_123456", Function: "saltutil.refresh_pillar",
			Target: "G@role:web and not web17*", User: "sudo_ada", Minions: 30150, Returned: 30120,
			Nodes: []string{st.Members[0].ID, st.Members[1].ID, st.Members[2].ID}}}}
	events := adminapi.HandledEvents{Events: []adminapi.HandledEvent{{Time: now, Node: st.Members[1].ID,
		Minion: "web-frontend-0017.dmz.frankfurt.example.com", Tag: "salt/beacon/web-frontend-0017.dmz.frankfurt.example.com/load/",
		From: st.Members[0].ID, Elsewhere: true}}}
	finding := doctor.Finding{Check: "permissions", Level: doctor.Warn, Where: "/srv/salt",
		What: strings.Repeat("the user salt may not write there, ", 5), Why: strings.Repeat("this node stays behind ", 6),
		Next: strings.Repeat("chown -R salt: /srv/salt ", 6)}
	return map[string]func(*console.Screen){
		"status":  func(s *console.Screen) { statusScreen(s, st, now) },
		"members": func(s *console.Screen) { membersTable(s, "", st.Members, now) },
		"top": func(s *console.Screen) {
			topScreen(s, st, now)
			ratesLine(s, longRates(now, 0), longRates(now, 1), nil)
		},
		"jobs list":        func(s *console.Screen) { jobsScreen(s, jobs, now) },
		"events":           func(s *console.Screen) { handledEvents(s, events, false) },
		"events --explain": func(s *console.Screen) { handledEvents(s, events, true) },
		"doctor":           func(s *console.Screen) { support.FindingLines(s, finding) },
		"steps":            func(s *console.Screen) { console.NextSteps(s, []string{strings.Repeat("restart it ", 20)}) },
	}
}

func longRates(now time.Time, second int) counters {
	c := counters{at: now.Add(time.Duration(second) * time.Second), sums: map[string]float64{}}
	for _, r := range rates {
		c.sums[r[1]] = float64(second) * 123456.7
	}
	return c
}

// What people look at fits into 80 columns whatever is shown, with colours or without, and is whole with --wide.
func TestScreens_80Columns(t *testing.T) {
	now := time.Date(2026, 3, 4, 10, 30, 0, 0, time.UTC)
	for name, show := range longScreens(now) {
		t.Run(name, func(t *testing.T) {
			narrow, wide := &console.Screen{Columns: 80}, &console.Screen{Wide: true}
			show(narrow)
			show(wide)
			for line := range strings.Lines(narrow.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
					t.Errorf("%d columns: %s", n, line)
				}
			}
			if strings.Contains(wide.String(), "…") {
				t.Errorf("with --wide it is cut:\n%s", wide.String())
			}
			longest := 0
			for line := range strings.Lines(wide.String()) {
				longest = max(longest, utf8.RuneCountInString(line))
			}
			if longest <= 81 {
				t.Errorf("the texts of this test are not long:\n%s", wide.String())
			}
		})
	}
}
