package router

import (
	"reflect"
	"slices"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
)

const (
	n1 = node.ID("n1") // this node
	n2 = node.ID("n2")
	n3 = node.ID("n3")
)

// everything is a node that can do all without its master's Python.
var everything = Native{Returns: true, Events: true}

func callOf(cmd string, change func(*Call)) Call {
	c := Call{Cmd: cmd, JID: "20261128010203000001", Self: n1, Can: everything}
	if change != nil {
		change(&c)
	}
	return c
}

func TestStart(t *testing.T) {
	relayed := func(c *Call) { c.Relayed = true }
	for _, test := range []struct {
		name string
		call Call
		d    Decision
		want Step
	}{
		{"another command", callOf("_pillar", nil), Decision{Kind: ToLocal}, Step{Action: DoAskMaster}},
		{"a question", callOf("pub_ret", nil), Decision{Kind: ToLocal}, Step{Action: DoReadJobCache}},
		{"a question without a job", callOf("pub_ret", func(c *Call) { c.JID = "" }), Decision{Kind: ToLocal},
			Step{Action: DoAskMaster}},
		{"a question, no native returns", callOf("pub_ret", func(c *Call) { c.Can.Returns = false }), Decision{Kind: ToLocal},
			Step{Action: DoAskMaster}},
		{"an event", callOf("_minion_event", nil), Decision{Kind: ToLocal}, Step{Action: DoFire}},
		{"an event for Python", callOf("_minion_event", func(c *Call) { c.Can.Events = false }), Decision{Kind: ToLocal},
			Step{Action: DoAskMaster}},
		{"a mine", callOf("_mine", func(c *Call) { c.Can.Mines = true }), Decision{Kind: ToLocal}, Step{Action: DoMine}},
		{"a mine for all", callOf("_mine", func(c *Call) { c.Can.Mines = true }),
			Decision{Kind: ToAll, Others: []node.ID{n2}}, Step{Action: DoMine}},
		{"a return", callOf("_return", nil), Decision{Kind: ToLocal}, Step{Action: DoJournal}},
		{"a return for Python", callOf("_return", func(c *Call) { c.Can.Returns = false }), Decision{Kind: ToLocal},
			Step{Action: DoAskMaster}},
		{"a return for its publisher", callOf("_return", nil), Decision{Kind: ToNode, Node: n2, Job: true},
			Step{Action: DoAskNode, Node: n2}},
		{"a return of a publisher that is away", callOf("_return", nil), Decision{Kind: Keep, Node: n2},
			Step{Action: DoKeepForNode, Node: n2}},
		{"the same without a journal", callOf("_return", func(c *Call) { c.Can.Returns = false }),
			Decision{Kind: Keep, Node: n2, Others: []node.ID{n3}},
			Step{Action: DoAskNode, Node: n3, Failover: true}},
		{"no Salt has it", callOf("run_func", nil), Decision{Kind: Answer, Reply: emptyMap},
			Step{Action: DoSeal, Reply: emptyMap}},
		{"several ways", callOf("_minion_event", nil), Decision{Kind: Split, Parts: []Part{{Kind: ToLocal}}},
			Step{Action: DoSplit, Parts: []Part{{Kind: ToLocal}}}},
		{"no master", callOf("_pillar", nil), Decision{}, Step{Action: DoWait, Where: "nowhere"}},
		{"no master, relayed", callOf("_pillar", relayed), Decision{}, Step{Action: DoAbandon, Where: "nowhere"}},
		{"no master, for every master", callOf("_minion_event", func(c *Call) { c.Fixed = true }), Decision{},
			Step{Action: DoAbandon, Where: "nowhere"}},
		{"no master, after it was to be kept", callOf("_return", func(c *Call) { c.Deferred = true }), Decision{},
			Step{Action: DoAbandon, Where: "nowhere"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, step := Start(test.call, test.d)
			check.DeepEqual(t, step, test.want, "step")
			if test.d.Kind == ToAll && got.Others != nil {
				t.Error("a master that has its copy is asked, as if it had none")
			}
		})
	}
}

func TestStart_ForgetsTheDecisionBefore(t *testing.T) {
	c, _ := Start(callOf("_return", nil), Decision{Kind: ToNode, Node: n2, Job: true, Others: []node.ID{n3}})
	if c.KeepFor != n2 {
		t.Fatalf("kept for %q, want the publisher", c.KeepFor)
	}
	if c, _ = Start(c, Decision{Kind: ToLocal}); c.KeepFor != "" || c.Others != nil {
		t.Errorf("kept for %q, others %v, want none", c.KeepFor, c.Others)
	}
}

func TestBegin(t *testing.T) {
	check.Equal(t, Begin(Call{}).Action, DoRoute)
	check.Equal(t, Begin(Call{Can: Native{Files: true}}).Action, DoReadFiles)
}

func TestNext(t *testing.T) {
	others := func(ids ...node.ID) func(*Call) { return func(c *Call) { c.Others = ids } }
	with := func(changes ...func(*Call)) func(*Call) {
		return func(c *Call) {
			for _, change := range changes {
				change(c)
			}
		}
	}
	relayed := func(c *Call) { c.Relayed = true }
	repeat := func(c *Call) { c.Repeat = true }
	deferred := func(c *Call) { c.Deferred = true }
	also := func(c *Call) { c.KeepFor, c.Also = n2, []node.ID{n3} }
	publisher := func(id node.ID) func(*Call) { return func(c *Call) { c.Publisher = id } }
	for _, test := range []struct {
		name string
		call Call
		o    Outcome
		want Step
	}{
		{"answered", callOf("_pillar", nil), Outcome{Action: DoAskMaster}, Step{Action: DoReply}},
		{"malformed", callOf("_return", nil), Outcome{Action: DoJournal, Result: Malformed}, Step{Action: DoRefuse}},

		{"files only a master has", callOf("_serve_file", nil), Outcome{Action: DoReadFiles, Result: MasterOnly},
			Step{Action: DoRoute}},
		{"a mine only a master reads", callOf("_mine_get", nil), Outcome{Action: DoMine, Result: MasterOnly},
			Step{Action: DoAskMaster}},
		{"a question for mines, its minion gone", callOf("_mine_get", nil),
			Outcome{Action: DoMine, Result: MasterOnly, Gone: true}, Step{Action: DoDrop}},
		{"a change of a mine, its minion gone", callOf("_mine", nil), Outcome{Action: DoMine, Result: MasterOnly, Gone: true},
			Step{Action: DoAskMaster}},
		{"a mine that the disk does not take", callOf("_mine", others(n2, n3)), Outcome{Action: DoMine, Result: DiskFailed},
			Step{Action: DoAskNode, Node: n2, Failover: true}},
		{"the same, relayed", callOf("_mine", relayed), Outcome{Action: DoMine, Result: DiskFailed},
			Step{Action: DoPassBack, Where: "mine"}},
		{"the same, no other node", callOf("_mine", nil), Outcome{Action: DoMine, Result: DiskFailed},
			Step{Action: DoAbandon, Where: "mine"}},
		{"a mine while this process ends", callOf("_mine", nil), Outcome{Action: DoMine, Result: MasterOnly, Closing: true},
			Step{Action: DoDrop}},
		{"events only Python fires", callOf("_minion_event", nil), Outcome{Action: DoFire, Result: MasterOnly},
			Step{Action: DoAskMaster}},
		{"events that may have been fired", callOf("_minion_event", nil), Outcome{Action: DoFire, Result: Unanswered},
			Step{Action: DoAbandon, Where: "bus"}},

		{"the job's publisher cannot be reached, others have published it", callOf("_return", also),
			Outcome{Action: DoAskNode, Node: n2, Result: Unsent}, Step{Action: DoAskNode, Node: n3, Failover: true}},
		{"one of them is this node", callOf("_return", func(c *Call) { c.KeepFor, c.Also = n2, []node.ID{n1} }),
			Outcome{Action: DoAskNode, Node: n2, Result: Unsent}, Step{Action: DoJournal, Failover: true}},
		{"the job's publisher may have the return", callOf("_return", also),
			Outcome{Action: DoAskNode, Node: n2, Result: Unanswered}, Step{Action: DoKeepForNode, Node: n2}},
		{"a return only Python takes", callOf("_return", nil), Outcome{Action: DoJournal, Result: MasterOnly},
			Step{Action: DoAskMaster}},
		{"a journal that is full", callOf("_return", nil), Outcome{Action: DoJournal, Result: Unsent},
			Step{Action: DoAskMaster}},
		{"a journal whose disk fails", callOf("_return", nil), Outcome{Action: DoJournal, Result: DiskFailed},
			Step{Action: DoHandOff, Node: n1}},
		{"the same, relayed", callOf("_return", relayed), Outcome{Action: DoJournal, Result: DiskFailed},
			Step{Action: DoPassBack, Where: "journal"}},
		{"no node keeps it", callOf("_return", nil), Outcome{Action: DoHandOff, Node: n1, Result: Unsent},
			Step{Action: DoAbandon, Where: "journal"}},

		{"publisher does not answer", callOf("_return", with(others(n3), func(c *Call) { c.KeepFor = n2 })),
			Outcome{Action: DoAskNode, Node: n2, Result: Unanswered}, Step{Action: DoKeepForNode, Node: n2}},
		{"publisher does not answer, no journal",
			callOf("_return", with(others(n3), repeat, func(c *Call) { c.KeepFor, c.Can.Returns = n2, false })),
			Outcome{Action: DoAskNode, Node: n2, Result: Unanswered}, Step{Action: DoAskNode, Node: n3, Failover: true}},
		{"it cannot be kept: another master", callOf("_return", others(n3)),
			Outcome{Action: DoKeepForNode, Node: n2, Result: Unsent},
			Step{Action: DoAskNode, Node: n3, Failover: true}},
		{"it cannot be kept: this node's master", callOf("_return", others(n1)),
			Outcome{Action: DoKeepForNode, Node: n2, Result: Unsent},
			Step{Action: DoJournal, Failover: true}},
		{"it cannot be kept, for the disk fails", callOf("_return", others(n3)),
			Outcome{Action: DoKeepForNode, Node: n2, Result: DiskFailed},
			Step{Action: DoHandOff, Node: n2}},
		{"it cannot be kept, nobody else", callOf("_return", nil), Outcome{Action: DoKeepForNode, Node: n2, Result: Unsent},
			Step{Action: DoAbandon, Where: "publisher"}},

		{"master does not take a return", callOf("_return", others(n2)),
			Outcome{Action: DoAskMaster, Result: Unsent, Down: true}, Step{Action: DoKeepForMaster}},
		{"its minion has gone, perhaps it was taken", callOf("_return", with(others(n2), repeat)),
			Outcome{Action: DoAskMaster, Result: Unanswered, Gone: true},
			Step{Action: DoAbandon, Where: "local"}},
		{"its minion has gone, it was not taken", callOf("_return", nil),
			Outcome{Action: DoAskMaster, Result: Unsent, Gone: true}, Step{Action: DoKeepForMaster}},
		{"a return of version 2", callOf("_return", with(others(n2), func(c *Call) { c.Shared = true })),
			Outcome{Action: DoAskMaster, Result: Unsent},
			Step{Action: DoAskNode, Node: n2, Failover: true}},
		{"a return that cannot be kept", callOf("_return", with(others(n2), deferred)),
			Outcome{Action: DoKeepForMaster, Result: Unsent},
			Step{Action: DoAskNode, Node: n2, Failover: true}},
		{"a return for the master whose journal fails", callOf("_return", with(others(n2), deferred)),
			Outcome{Action: DoKeepForMaster, Result: DiskFailed}, Step{Action: DoHandOff, Node: n1}},
		{"the same, relayed", callOf("_return", with(relayed, others(n2), deferred)),
			Outcome{Action: DoKeepForMaster, Result: DiskFailed}, Step{Action: DoPassBack, Where: "journal"}},
		{"a return that cannot be kept, the last", callOf("_return", deferred),
			Outcome{Action: DoKeepForMaster, Result: Unsent, Down: true},
			Step{Action: DoAbandon, Where: "local"}},

		{"master is down, another takes it", callOf("_pillar", others(n2)),
			Outcome{Action: DoAskMaster, Result: Unsent, Down: true},
			Step{Action: DoAskNode, Node: n2, Failover: true}},
		{"master is down, no other", callOf("_pillar", nil), Outcome{Action: DoAskMaster, Result: Unsent, Down: true},
			Step{Action: DoWait, Where: "local"}},
		{"the same, relayed", callOf("_pillar", relayed), Outcome{Action: DoAskMaster, Result: Unsent, Down: true},
			Step{Action: DoPassBack, Where: "local", Down: true}},
		{"relayed, may have been done", callOf("_pillar", relayed), Outcome{Action: DoAskMaster, Result: Unanswered},
			Step{Action: DoAbandon, Where: "local"}},
		{"may have been done, harmless", callOf("_pillar", with(others(n2), repeat)),
			Outcome{Action: DoAskMaster, Result: Unanswered},
			Step{Action: DoAskNode, Node: n2, Failover: true}},
		{"may have been done, not harmless", callOf("minion_pub", others(n2)),
			Outcome{Action: DoAskMaster, Result: Unanswered}, Step{Action: DoAbandon, Where: "local"}},
		{"its minion has gone", callOf("_pillar", others(n2)),
			Outcome{Action: DoAskNode, Node: n3, Result: Unsent, Gone: true}, Step{Action: DoAbandon, Where: "relay"}},
		{"this process ends", callOf("_pillar", others(n2)),
			Outcome{Action: DoAskNode, Node: n3, Result: Unsent, Closing: true}, Step{Action: DoAbandon, Where: "relay"}},
		{"other is this node", callOf("_pillar", others(n1, n3)), Outcome{Action: DoAskNode, Node: n2, Result: Unsent},
			Step{Action: DoAskMaster, Failover: true}},
		{"a chunk of a file stays", callOf("_file_recv", others(n2)),
			Outcome{Action: DoAskMaster, Result: Unsent, Busy: true}, Step{Action: DoAbandon, Where: "local"}},
		{"a chunk whose master is down", callOf("_file_recv", others(n2)),
			Outcome{Action: DoAskMaster, Result: Unsent, Down: true},
			Step{Action: DoAskNode, Node: n2, Failover: true}},

		{"job unknown here", callOf("pub_ret", others(n2)), Outcome{Action: DoReadJobCache, Result: UnknownJob},
			Step{Action: DoAskNode, Node: n2, Failover: true}},
		{"job unknown here, its minion gone", callOf("pub_ret", others(n2)),
			Outcome{Action: DoReadJobCache, Result: UnknownJob, Gone: true},
			Step{Action: DoAbandon, Where: "cache"}},
		{"job cache that only Python reads", callOf("pub_ret", nil), Outcome{Action: DoReadJobCache, Result: MasterOnly},
			Step{Action: DoAskMaster}},
		{"job unknown to the publisher", callOf("pub_ret", publisher(n2)),
			Outcome{Action: DoAskNode, Node: n2, Result: UnknownJob},
			Step{Action: DoSeal, Reply: emptyText, Where: "cache"}},
		{"job unknown to all but the publisher", callOf("pub_ret", publisher(n3)),
			Outcome{Action: DoAskNode, Node: n2, Result: UnknownJob},
			Step{Action: DoSeal, Reply: emptyMap, Where: "cache"}},
		{"job unknown, publisher too", callOf("pub_ret", nil), Outcome{Action: DoAskNode, Node: n2, Result: UnknownJob},
			Step{Action: DoSeal, Reply: emptyText, Where: "cache"}},
		{"job unknown, one not asked", callOf("pub_ret", func(c *Call) { c.Unheard = true }),
			Outcome{Action: DoAskNode, Node: n2, Result: UnknownJob},
			Step{Action: DoSeal, Reply: emptyMap, Where: "cache"}},
		{"job unknown, relayed", callOf("pub_ret", with(relayed, publisher(n3))),
			Outcome{Action: DoReadJobCache, Result: UnknownJob},
			Step{Action: DoSeal, Reply: emptyText, Where: "cache"}},
		{"the last that might know does not answer", callOf("pub_ret", nil),
			Outcome{Action: DoAskNode, Node: n2, Result: Unanswered},
			Step{Action: DoSeal, Reply: emptyMap, Where: "cache"}},
		{"the same, but the publisher has answered", callOf("pub_ret", func(c *Call) { c.Asked = true }),
			Outcome{Action: DoAskNode, Node: n2, Result: Unanswered},
			Step{Action: DoSeal, Reply: emptyText, Where: "cache"}},
		{"one that might know does not answer", callOf("pub_ret", with(others(n3), repeat)),
			Outcome{Action: DoAskNode, Node: n2, Result: Unanswered},
			Step{Action: DoAskNode, Node: n3, Failover: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, step := Next(test.call, test.o); !reflect.DeepEqual(step, test.want) {
				t.Errorf("step is %+v, want %+v", step, test.want)
			}
		})
	}
}

// TestNext_Ends: from every state a request ends after finitely many failures, and no master is asked twice.
func TestNext_Ends(t *testing.T) {
	results := []Result{MasterOnly, UnknownJob, DiskFailed, Unsent, Unanswered}
	var follow func(t *testing.T, c Call, s Step, asked []node.ID, depth int)
	follow = func(t *testing.T, c Call, s Step, asked []node.ID, depth int) {
		if depth > 20 {
			t.Fatalf("%s: still %v after %d steps", c.Cmd, s.Action, depth)
		}
		switch {
		case s.Action < DoReadFiles: // it ends, waits, or is decided anew
			return
		case s.Action == DoAskNode || s.Action == DoAskMaster:
			at := s.Node
			if s.Action == DoAskMaster {
				at = c.Self
			}
			if slices.Contains(asked, at) {
				t.Fatalf("%s: %s is asked twice", c.Cmd, at)
			}
			asked = append(slices.Clone(asked), at)
		}
		for _, r := range results {
			if r == UnknownJob && !c.asksForJob() {
				continue
			}
			next, step := Next(c, Outcome{Action: s.Action, Node: s.Node, Result: r})
			follow(t, next, step, asked, depth+1)
		}
	}
	for _, command := range Commands {
		for _, repeat := range []bool{false, true} {
			for _, native := range []Native{{}, everything, {Returns: true, Events: true, Mines: true}} {
				c := Call{Cmd: command.Name, JID: "20261128010203000001", Self: n1, Can: native}
				for _, d := range []Decision{
					{Kind: ToLocal, Others: []node.ID{n2, n3}, Repeat: repeat},
					{Kind: ToNode, Node: n2, Others: []node.ID{n1, n3}, Repeat: repeat, Job: IsReturn(command.Name)},
				} {
					started, step := Start(c, d)
					follow(t, started, step, nil, 0)
				}
			}
		}
	}
}
