package history_test

import (
	"slices"
	"testing"
	"time"

	"saltclusterd/integration/history"
)

// t0 is when all histories of these tests begin.
var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return t0.Add(time.Duration(seconds * float64(time.Second))) }

// sound is a history of one publication that everybody got: m1 published number 7 at 10 s, "a" hangs on m2.
func sound() *history.History {
	return &history.History{
		Nodes: []string{"m1", "m2", "m3"},
		Start: t0,
		Publications: []history.Publication{{Number: 7, Node: "m1", Start: at(10), End: at(10.1), Outcome: history.OK,
			Jid: "j7"}},
		Presences: []history.Presence{{Minion: "a", Node: "m2", From: at(0), To: at(60)}},
		Runs:      []history.Run{{Minion: "a", Jid: "j7", Number: 7, At: at(10.2)}},
		Returns: []history.Return{{Minion: "a", Node: "m2", Jid: "j7", Number: 7, At: at(10.2), Acked: at(10.3),
			Tries: 1}},
		Cache: []history.Cached{{Node: "m1", Jid: "j7", Minion: "a", Number: 7}},
		KeyOps: []history.KeyOp{
			{Node: "m1", Verb: history.Accept, ID: "k", Start: at(1), End: at(2), Outcome: history.OK},
			{Node: "m2", Verb: history.Delete, ID: "k", Start: at(5), End: at(6), Outcome: history.OK},
		},
		Probes: []history.Probe{{ID: "k", Node: "m3", What: "sign in", At: at(60), Detail: "pending"}},
		Sents:  []history.Sent{{Minion: "a", Tag: "e1", At: at(12), Acked: at(12.1)}},
		Heards: []history.Heard{{Node: "m3", Tag: "e1", At: at(12.1)}},
		Views:  []history.View{view("m1"), view("m2"), view("m3")},
	}
}

func view(node string) history.View {
	return history.View{
		Node: node, UUID: "u", Identity: "i", AES: "x", Epoch: 2, Leader: "m1", Members: []string{"m1", "m2", "m3"},
		Keys: map[string][]string{"minions": {"a"}},
	}
}

func fault(f history.Fault) func(*history.History) {
	return func(h *history.History) { h.Faults = append(h.Faults, f) }
}

func TestCheck(t *testing.T) {
	notCached := func(h *history.History) { h.Cache = nil }
	notRun := func(h *history.History) { h.Runs, h.Returns, h.Cache = nil, nil, nil }
	notAcked := func(h *history.History) { h.Returns[0].Acked = time.Time{} }
	both := func(fs ...func(*history.History)) func(*history.History) {
		return func(h *history.History) {
			for _, f := range fs {
				f(h)
			}
		}
	}
	m3Down := history.Fault{Kind: "kill", Nodes: []string{"m3"}, Start: at(9), End: at(20)}
	m1Down := history.Fault{Kind: "kill", Nodes: []string{"m1"}, Start: at(9), End: at(20)}
	early := history.Fault{Kind: "kill", Nodes: []string{"m1"}, Start: at(1), End: at(2)}
	outlast := func(f history.Fault) history.Fault { f.Outlasted = true; return f }
	caught := func(f history.Fault) history.Fault { f.Caught = true; return outlast(f) }
	anywhere := func(h *history.History) { h.Presences[0].Node = "" }
	roams := func(h *history.History) { h.Presences[0].Node, h.Presences[0].Roams = "", true }
	cut12 := history.Fault{Kind: "cut", Cuts: [][2]string{{"m2", "m1"}}, Start: at(9), End: at(20)}
	cut13 := history.Fault{Kind: "cut", Cuts: [][2]string{{"m3", "m1"}}, Start: at(9), End: at(20)}
	for _, c := range []struct {
		name string
		do   func(*history.History)
		want []string
	}{
		{"sound", func(*history.History) {}, nil},
		{"lost", notCached, []string{history.RuleAcked}},
		{"lost during a fault", both(notCached, fault(m1Down)), []string{history.RuleAcked}},
		{"in another node's cache", func(h *history.History) { h.Cache[0].Node = "m2" }, []string{history.RuleAcked}},
		{"in two nodes' caches", func(h *history.History) {
			h.Cache = append(h.Cache, history.Cached{Node: "m2", Jid: "j7", Minion: "a", Number: 7})
		}, nil},
		{"jid of the publication unknown", func(h *history.History) {
			h.Publications[0].Jid, h.Publications[0].Outcome = "", history.Unknown
		}, nil},
		{"twice in the cache", func(h *history.History) { h.Cache = append(h.Cache, h.Cache[0]) },
			[]string{history.RuleAcked}},
		{"something else in the cache", func(h *history.History) { h.Cache[0].Number = 8 }, []string{history.RuleAcked}},
		{"half in the cache", func(h *history.History) { h.Cache[0].Error = "cut short" }, []string{history.RuleAcked}},
		{"not acknowledged", notAcked, []string{history.RuleAnswered}},
		{"not acknowledged, publisher down", both(notAcked, fault(m1Down)), nil},
		{"not acknowledged, another node down", both(notAcked, fault(m3Down)), []string{history.RuleAnswered}},
		{"run twice", func(h *history.History) { h.Runs = append(h.Runs, h.Runs[0]) }, []string{history.RuleAtMostOnce}},
		{"run twice during a fault", both(func(h *history.History) { h.Runs = append(h.Runs, h.Runs[0]) }, fault(m1Down)),
			[]string{history.RuleAtMostOnce}},
		{"not delivered", notRun, []string{history.RuleDelivered}},
		{"not delivered, connected too late", both(notRun, func(h *history.History) { h.Presences[0].From = at(9) }), nil},
		{"not delivered, gone too early", both(notRun, func(h *history.History) { h.Presences[0].To = at(11) }), nil},
		{"not delivered, publisher down", both(notRun, fault(m1Down)), nil},
		{"not delivered, was down before", both(notRun, fault(early)), []string{history.RuleDelivered}},
		{"not delivered, never up again", both(notRun, fault(history.Fault{Nodes: []string{"m1"}, Start: at(1)})),
			[]string{history.RuleRecovered}},
		{"not delivered, others down", both(notRun, fault(m3Down)), []string{history.RuleDelivered}},
		{"not delivered, link cut", both(notRun, fault(cut12)), nil},
		{"not delivered, other link cut", both(notRun, fault(cut13)), []string{history.RuleDelivered}},
		{"not delivered, anywhere", both(notRun, fault(m3Down), anywhere), nil},
		{"not delivered late", both(notRun, fault(outlast(m3Down)), roams), []string{history.RuleDelivered}},
		{"not delivered late, link cut", both(notRun, fault(outlast(cut12)), roams), []string{history.RuleDelivered}},
		{"not delivered late, publisher down", both(notRun, fault(outlast(m1Down)), roams), nil},
		{"not delivered late, publisher down for a moment", both(notRun, fault(caught(m1Down)), roams),
			[]string{history.RuleDelivered}},
		{"not delivered late, gone too early", both(notRun, fault(outlast(m3Down)), roams,
			func(h *history.History) { h.Presences[0].To = at(40) }), nil},
		{"not delivered late, another fault", both(notRun, fault(outlast(m3Down)), roams,
			func(h *history.History) {
				h.Faults = append(h.Faults, history.Fault{Kind: "all", Nodes: []string{"m2"}, Start: at(30), End: at(31)})
			}), nil},
		{"not delivered late, after another fault",
			both(notRun, fault(history.Fault{Kind: "all", Nodes: []string{"m2"}, Start: at(1), End: at(2)}),
				roams), nil},
		{"not delivered, publication unknown", both(notRun,
			func(h *history.History) { h.Publications[0].Outcome = history.Unknown }), nil},
		{"deleted key works", func(h *history.History) { h.Probes[0].Worked = true }, []string{history.RuleDeleted}},
		{"deleted, perhaps", both(func(h *history.History) { h.Probes[0].Worked = true },
			func(h *history.History) { h.KeyOps[1].Outcome = history.Unknown }), nil},
		{"deletion refused", both(func(h *history.History) { h.Probes[0].Worked = true },
			func(h *history.History) { h.KeyOps[1].Outcome = history.Failed },
			func(h *history.History) {
				for i := range h.Views {
					h.Views[i].Keys = map[string][]string{"minions": {"a", "k"}}
				}
			}), nil},
		{"deleted key is back", func(h *history.History) { h.Views[1].Keys = map[string][]string{"minions": {"a", "k"}} },
			[]string{history.RuleKeys, history.RuleKeys}},
		{"accepted key is nowhere", func(h *history.History) { h.KeyOps = h.KeyOps[:1] },
			[]string{history.RuleKeys, history.RuleKeys, history.RuleKeys}},
		{"accepted and deleted at once", func(h *history.History) { h.KeyOps[1].Start = at(1.5) }, nil},
		{"two leaders", func(h *history.History) { h.Views[2].Leader = "m3" }, []string{history.RuleOneCluster}},
		{"no leader", func(h *history.History) { h.Views[2].Leader = "" },
			[]string{history.RuleOneCluster, history.RuleOneCluster}},
		{"two AES keys", func(h *history.History) { h.Views[2].AES = "y" }, []string{history.RuleOneCluster}},
		{"a node says nothing", func(h *history.History) { h.Views = h.Views[:2] }, []string{history.RuleOneCluster}},
		{"event twice", func(h *history.History) { h.Heards = append(h.Heards, history.Heard{Node: "m1", Tag: "e1"}) },
			[]string{history.RuleEventOnce}},
		{"event lost", func(h *history.History) { h.Heards = nil }, []string{history.RuleEventLost}},
		{"event lost, something broken", both(func(h *history.History) { h.Heards = nil }, fault(m3Down)), nil},
		{"event not acknowledged", func(h *history.History) { h.Heards, h.Sents[0].Acked = nil, time.Time{} }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := sound()
			c.do(h)
			var got []string
			for _, v := range history.Check(h, history.DefaultOptions()) {
				got = append(got, v.Rule)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
