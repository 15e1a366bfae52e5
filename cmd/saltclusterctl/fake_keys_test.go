package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"saltclusterd/sidecar/adminapi"
)

var keyDecided = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func someKeys() []adminapi.MinionKey {
	print := func(s string) string { return strings.Repeat(s+":", 31) + s }
	return []adminapi.MinionKey{
		{ID: "db1", State: adminapi.KeyAccepted, Fingerprint: print("1a"), Rev: 12, By: "m1", At: keyDecided,
			Cause: "salt-key"},
		{ID: "web1", State: adminapi.KeyPending, Fingerprint: print("2b"), Rev: 14, By: "m2", At: keyDecided.Add(time.Hour),
			Cause: "new"},
		{ID: "web2", State: adminapi.KeyPending, Fingerprint: print("3c"), Rev: 15, By: "m2", At: keyDecided.Add(time.Hour),
			Cause: "new"},
		{ID: "db1", State: adminapi.KeyDenied, Fingerprint: print("4d"), Rev: 16, By: "m3",
			At: keyDecided.Add(2 * time.Hour)},
	}
}

func (f *fake) Keys(_ context.Context, q adminapi.KeyQuery) (adminapi.Keys, error) {
	out := adminapi.Keys{From: "m1", Rev: 16, Counts: map[string]int{}, Keys: []adminapi.MinionKey{}}
	list := append(someKeys(), f.odd...)
	if q.History {
		list = append(list, adminapi.MinionKey{ID: "old1", State: adminapi.KeyDeleted, Rev: 11, By: "m1", Cause: "salt-key"})
		slices.Reverse(list)
	}
	for _, k := range list {
		out.Counts[k.State]++
		prefix := strings.TrimSuffix(q.Match, "*")
		switch {
		case q.ID != "" && q.ID != k.ID, q.State != "" && q.State != k.State, !strings.HasPrefix(k.ID, prefix):
		case q.After != "" && k.ID <= q.After:
		case f.part > 0 && len(out.Keys) == f.part:
			out.More++
		default:
			out.Keys = append(out.Keys, k)
		}
	}
	return out, f.err
}

func (f *fake) HeldKeys(context.Context) (adminapi.HeldKeys, error) {
	return adminapi.HeldKeys{Node: "m1", IDs: slices.Clone(f.held)}, f.err
}

func (f *fake) ForgetHeldKeys(ctx context.Context) (adminapi.HeldKeys, error) {
	defer func() { f.held = nil }()
	return f.HeldKeys(ctx)
}

func (f *fake) DecideKeys(_ context.Context, r adminapi.DecideKeysRequest) (adminapi.DecidedKeys, error) {
	out := adminapi.DecidedKeys{Rev: 17}
	for _, id := range r.IDs {
		k := adminapi.DecidedKey{ID: id}
		if id == "web2" && r.State == adminapi.KeyRejected {
			k.Error = "key \"web2\" is at revision 18, the proposal is based on 15"
		}
		out.Keys = append(out.Keys, k)
	}
	return out, f.err
}

func (f *fake) Checkup(context.Context) (adminapi.Checkup, error) {
	skew, much := 0.0004, -75.2
	return adminapi.Checkup{Node: f.status.Node.ID, Peers: []adminapi.CheckupPeer{
		{Node: "m2", Address: "10.0.0.12:4520", RoundTrip: 0.0004, Skew: &skew},
		{Node: "m3", Address: "10.0.0.13:4520", RoundTrip: 0.0004, Skew: &much},
	}}, f.err
}

func (f *fake) LogLevel(context.Context) (adminapi.LogLevel, error) {
	return adminapi.LogLevel{Level: "info", Configured: "info"}, f.err
}

func (f *fake) SetLogLevel(_ context.Context, r adminapi.SetLogLevelRequest) (adminapi.LogLevel, error) {
	l := adminapi.LogLevel{Level: r.Level, Configured: "info"}
	if r.Level == "" {
		l.Level = "info"
	}
	if r.For > 0 {
		l.Until = time.Now().Add(r.For + 500*time.Millisecond)
	}
	return l, f.err
}

func (f *fake) HandledEvents(_ context.Context, minion string, limit int) (adminapi.HandledEvents, error) {
	at := time.Date(2026, 11, 23, 12, 30, 5, 250e6, time.UTC)
	out := adminapi.HandledEvents{From: "m1", Events: []adminapi.HandledEvent{
		{Time: at, Node: "m2", Minion: "web1", Tag: "salt/beacon/web1/load/", From: "m1", Policy: "owner"},
		{Time: at.Add(-time.Second), Node: "m1", Minion: "web2", Tag: "site/flush", From: "m1", Rule: "site/*", Policy: "all",
			Python: true},
		{Time: at.Add(-2 * time.Second), Node: "m3", Minion: "web1", Tag: "salt/job/20260102030405000001/prog/web1",
			From: "m2", Policy: "owner", JID: "20260102030405000001"},
		{Time: at.Add(-3 * time.Second), Node: "m3", Minion: "web1", Tag: "old", From: "m3", Policy: "owner",
			Elsewhere: true},
	}}
	out.Events = slices.DeleteFunc(out.Events,
		func(e adminapi.HandledEvent) bool { return minion != "" && e.Minion != minion })
	out.Events = out.Events[:min(limit, len(out.Events))]
	if minion == "web2" {
		out.Missing = []string{"m3"}
	}
	return out, f.err
}

func (f *fake) ExplainEvent(_ context.Context, minion, tag string) (adminapi.EventExplanation, error) {
	x := adminapi.EventExplanation{From: "m1", Minion: minion, Tag: tag, Policy: "owner", Nodes: []string{"m2"},
		Others: []string{"m3", "m1"}}
	switch {
	case strings.HasPrefix(tag, "salt/job/"):
		x.JID = aJob
	case strings.HasPrefix(tag, "site/"):
		x.Rule, x.Policy, x.Nodes, x.Others = "site/*", "all", []string{"m1", "m2", "m3"}, nil
	case tag == "nobody":
		x.Nodes, x.Others = nil, nil
	}
	return x, f.err
}
