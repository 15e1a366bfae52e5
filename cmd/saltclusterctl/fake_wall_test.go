package main

import (
	"context"
	"time"

	"saltclusterd/sidecar/adminapi"
)

func (f *fake) Wall(context.Context) (adminapi.Wall, error) {
	return adminapi.Wall{From: f.status.Node.ID, Rules: []adminapi.WallRule{
		{Name: "id_syntax", Mode: "enforce", Fixed: true, Refused: 2, Last: time.Now().Add(-90 * time.Minute),
			Doc: "an id is no path"},
		{Name: "event_tags", Mode: "enforce", Refused: 12, Last: time.Now().Add(-5*time.Second - 500*time.Millisecond),
			Minion: "web1\x1b[31m", Doc: "no tag of masters"},
		{Name: "return_jobs", Mode: "log", Logged: 3, Last: time.Now().Add(-50 * time.Hour), Minion: "web2",
			Doc: "returns for published jobs"},
		{Name: "budget", Mode: "off", Doc: "within the budget"},
	}}, f.err
}

func (f *fake) Protocols(context.Context) (adminapi.Protocols, error) {
	return adminapi.Protocols{From: f.status.Node.ID, Missing: []string{"m3"}, Unheard: []string{"old1"},
		Minions: []adminapi.MinionProtocol{
			{ID: "db1", Version: 3, Latest: 3, Seen: ago(5 * time.Second), Node: "m1", Address: "192.0.2.7",
				Returned: &adminapi.MinionReturn{
					JID: aJob, Function: "state.apply\x1b[31m", At: ago(6 * time.Minute),
				}},
			{ID: "web1", Version: 3, Latest: 3, Seen: ago(5 * time.Second), Node: "m1"},
			{ID: "web2", Version: 3, Node: "m2"},
			{ID: "web3", Version: 3, Latest: 2, Seen: ago(90 * time.Minute), Node: "m2"},
		}}, f.err
}

func (f *fake) Presence(context.Context) (adminapi.Presence, error) {
	return adminapi.Presence{From: f.status.Node.ID, Missing: []string{"m3"}, Present: []adminapi.PresentMinion{
		{ID: "db1", Node: "m1", Address: "192.0.2.7", Seen: ago(5 * time.Second)},
		{ID: "web1\x1b[31m", Node: "m2", Address: "192.0.2.9", Seen: ago(20 * time.Minute), Doubt: true},
	}, Absent: []adminapi.PresentMinion{
		{ID: "old1"},
		{ID: "web2", Node: "m2", Address: "192.0.2.9", Seen: ago(90 * time.Minute)},
	}}, f.err
}

// ago is a time that is said to be that long ago for half a second from now.
func ago(d time.Duration) time.Time { return time.Now().Add(-d - 500*time.Millisecond) }
