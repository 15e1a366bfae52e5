package router

import "saltclusterd/gossip/node"

// Action is what a node does with a request.
type Action uint8

// The actions. Those up to DoPassBack end a request on this node.
const (
	DoAbandon       Action = iota // give no answer: the minion sends it again
	DoDrop                        // give no answer, because the minion does not wait any more
	DoReply                       // hand over the reply of the action before
	DoSeal                        // seal Reply for the minion
	DoRefuse                      // answer as to a malformed request
	DoPassBack                    // return it to the node that relayed it: nothing was done with it
	DoRoute                       // decide where it goes (Decide, Start)
	DoSplit                       // send Parts their own ways
	DoWait                        // wait until a master can take it, then decide anew
	DoReadFiles                   // answer from this node's file roots
	DoReadJobCache                // answer pub_ret from this node's job cache
	DoFire                        // fire events on the local master's bus
	DoMine                        // read or change mines
	DoJournal                     // take a return into this node's journal
	DoKeepForNode                 // keep a return in this node's journal for Node
	DoKeepForMaster               // keep a return in this node's journal until the local master takes it
	DoHandOff                     // have another node keep a return for Node
	DoAskMaster                   // send it to the local master
	DoAskNode                     // relay it to Node
)

var actionNames = [...]string{
	DoAbandon: "abandon", DoDrop: "drop", DoReply: "reply", DoSeal: "seal", DoRefuse: "refuse", DoPassBack: "pass back",
	DoRoute: "route",
	DoSplit: "split", DoWait: "wait", DoReadFiles: "files", DoReadJobCache: "cache", DoFire: "bus", DoMine: "mine",
	DoJournal:     "journal",
	DoKeepForNode: "journal", DoKeepForMaster: "journal", DoHandOff: "journal", DoAskMaster: "local", DoAskNode: "relay",
}

// String names the place of an action, as the metrics of answered requests have it.
func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return "invalid"
}

// Step is an action with what it needs.
type Step struct {
	Action Action
	Node   node.ID // DoAskNode, DoKeepForNode, DoHandOff
	Reply  []byte  // DoSeal: msgpack
	Parts  []Part  // DoSplit
	// Where is the place at which a request ended without an answer (DoAbandon, DoPassBack, or DoWait when it may not
	// wait), or that an answer comes from (DoSeal; empty: from Decide).
	Where    string
	Down     bool // DoPassBack: because the local master is down
	Failover bool // another node or master takes the place of one that did not
}

// Result is how an action ended.
type Result uint8

// The results.
const (
	Done       Result = iota // there is a reply
	Malformed                // a master would not take it either
	MasterOnly               // only a master's Python can do it; nothing was done
	UnknownJob               // pub_ret: the node does not know that the minion has published the job
	// a disk failed; the local master must not get the request: it answers also when it could not store what came
	DiskFailed
	Unsent     // nothing was done
	Unanswered // it may have been done
)

// Outcome is the end of an action.
type Outcome struct {
	Action  Action
	Node    node.ID // of the Step
	Result  Result
	Down    bool // the master that was asked is down
	Busy    bool // or has too much to do
	Gone    bool // the minion does not wait any more
	Closing bool // this process ends
}

// Native says what this node can do with a request without its master's Python.
type Native struct {
	Files   bool // answer it from the file roots
	Returns bool // take returns, and answer questions for them
	Events  bool // fire events
	Mines   bool // read or change mines
}

// Call is what Next knows of a request: what it is, what this node can do, and what has happened to it.
type Call struct {
	Cmd     string
	JID     string
	Self    node.ID
	Relayed bool // another node has relayed it, and asks others itself
	Fixed   bool // every master gets it: no other takes this one's place
	Shared  bool // sealed with the key that all minions share: it cannot be kept for the master
	Can     Native

	Others    []node.ID // to try, in this order
	Repeat    bool      // see Command.Repeat
	Publisher node.ID   // of the job that pub_ret asks for, when it is a member
	KeepFor   node.ID   // a return is kept for this node when it does not answer
	Also      []node.ID // have published the same job as KeepFor

	Deferred bool // it was to be kept for the local master once
	Asked    bool // the publisher was asked
	Unheard  bool // a node that might know the job could not be asked
}

// Places where a request ends without an answer.
const (
	atMaster    = "local"
	atNode      = "relay"
	atPublisher = "publisher"
	atJobCache  = "cache"
	atBus       = "bus"
	atJournal   = "journal"
	atMine      = "mine"
	atNoNode    = "nowhere"
)

const (
	question  = "pub_ret"
	fileChunk = "_file_recv" // appends to one file, a chunk at a time
	mineQuery = "_mine_get"
)

// emptyText is what a stock master answers to pub_ret for a job that it does not know: its function has raised.
var emptyText = []byte{0xa0}

// Begin returns the first step of a request: files are answered before anything is routed.
func Begin(c Call) Step {
	if c.Can.Files {
		return Step{Action: DoReadFiles}
	}
	return Step{Action: DoRoute}
}

// Start returns the first step of a decision. It is called again when a request that waited is decided anew.
func Start(c Call, d Decision) (Call, Step) {
	c.Others, c.Repeat, c.Publisher, c.KeepFor, c.Also = d.Others, d.Repeat, d.Asks, "", d.Also
	switch d.Kind {
	case ToLocal:
		return c, c.serveLocally()
	case ToAll:
		c.Others = nil
		return c, c.serveLocally()
	case ToNode:
		if d.Job {
			c.KeepFor = d.Node
		}
		return c, Step{Action: DoAskNode, Node: d.Node}
	case Keep:
		if !c.isJournaled() {
			return c.tryNext(atPublisher, Outcome{Result: Unsent})
		}
		return c, Step{Action: DoKeepForNode, Node: d.Node}
	case Split:
		return c, Step{Action: DoSplit, Parts: d.Parts}
	case Answer:
		return c, Step{Action: DoSeal, Reply: d.Reply}
	}
	if c.mayWait() {
		return c, Step{Action: DoWait, Where: atNoNode}
	}
	return c, Step{Action: DoAbandon, Where: atNoNode}
}

// Next returns what happens to a request when an action has ended. It is pure: all that a request goes through is
// decided here.
func Next(c Call, o Outcome) (Call, Step) {
	switch o.Result {
	case Done:
		return c, Step{Action: DoReply}
	case Malformed:
		return c, Step{Action: DoRefuse}
	case UnknownJob:
		return c.jobUnknown(o)
	}
	switch o.Action {
	case DoReadFiles:
		return c, Step{Action: DoRoute}
	case DoMine:
		// a change of a mine counts without a minion that waits, as with a master
		if o.Closing || o.Gone && c.Cmd == mineQuery {
			return c, Step{Action: DoDrop}
		}
		if o.Result == DiskFailed {
			return c.tryNext(atMine, o)
		}
	case DoFire:
		if o.Result == Unanswered {
			return c, Step{Action: DoAbandon, Where: atBus}
		}
	case DoJournal:
		if o.Result == DiskFailed {
			return c.handOff(c.Self)
		}
	case DoKeepForMaster:
		if o.Result == DiskFailed {
			return c.handOff(c.Self)
		}
		return c.masterFailed(o)
	case DoKeepForNode:
		if o.Result == DiskFailed {
			return c.handOff(o.Node)
		}
		return c.failOver(atPublisher, o)
	case DoHandOff:
		return c, Step{Action: DoAbandon, Where: atJournal}
	case DoAskMaster:
		return c.masterFailed(o)
	case DoAskNode:
		if c.isJournaled() && c.KeepFor == o.Node {
			if o.Result == Unsent && len(c.Also) > 0 {
				return c.askAlso()
			}
			c.KeepFor = ""
			return c, Step{Action: DoKeepForNode, Node: o.Node}
		}
		return c.failOver(atNode, o)
	}
	return c, Step{Action: DoAskMaster}
}

// serveLocally is the first step of a request that is carried out on this node.
func (c Call) serveLocally() Step {
	switch {
	case c.asksForJob() && c.Can.Returns:
		return Step{Action: DoReadJobCache}
	case c.Can.Events && IsEvent(c.Cmd):
		return Step{Action: DoFire}
	case c.Can.Mines:
		return Step{Action: DoMine}
	case c.isJournaled():
		return Step{Action: DoJournal}
	}
	return Step{Action: DoAskMaster}
}

// asksForJob says whether a request asks what was returned for a job.
func (c Call) asksForJob() bool { return c.Cmd == question && c.JID != "" }

// isJournaled says whether a request is a return that a journal takes.
func (c Call) isJournaled() bool { return c.Can.Returns && IsReturn(c.Cmd) }

// mayWait says whether a request may wait for a master. A relayed one waits at the node that relayed it; of one that
// every master gets, others have theirs; one that was to be kept for the local master has waited.
func (c Call) mayWait() bool { return !c.Relayed && !c.Fixed && !c.Deferred }

// masterFailed continues when the local master has not answered: a return is kept for it.
func (c Call) masterFailed(o Outcome) (Call, Step) {
	if c.isJournaled() && !c.Deferred && !c.Shared && !(o.Gone && o.Result == Unanswered) {
		c.Deferred = true
		return c, Step{Action: DoKeepForMaster}
	}
	return c.failOver(atMaster, o)
}

// askAlso gives a return to the next node that has published the same job.
func (c Call) askAlso() (Call, Step) {
	c.KeepFor, c.Also = c.Also[0], c.Also[1:]
	return c, c.failOverTo(c.KeepFor)
}

// handOff has another node keep a return for a node. The node that relayed it does so itself.
func (c Call) handOff(to node.ID) (Call, Step) {
	if c.Relayed {
		return c, Step{Action: DoPassBack, Where: atJournal}
	}
	return c, Step{Action: DoHandOff, Node: to}
}

// jobUnknown continues a question when a node does not know the job.
func (c Call) jobUnknown(o Outcome) (Call, Step) {
	from := o.Node
	if o.Action != DoAskNode {
		from = c.Self
	}
	c.Asked = c.Asked || from == c.Publisher
	if len(c.Others) == 0 {
		return c.endQuestion()
	}
	o.Result = Unsent
	return c.tryNext(atJobCache, o)
}

// endQuestion answers a question that no node could. The minion gets what a stock master says or, when a node that
// might know could not be asked, that nothing was returned yet: then it asks again.
func (c Call) endQuestion() (Call, Step) {
	reply := emptyText
	if !c.Relayed && !c.Asked && (c.Publisher != "" || c.Unheard) {
		reply = emptyMap
	}
	return c, Step{Action: DoSeal, Reply: reply, Where: atJobCache}
}

// failOver continues when a master or a node has not done its part.
func (c Call) failOver(where string, o Outcome) (Call, Step) {
	if c.asksForJob() {
		c.Unheard = true
		if len(c.Others) == 0 && !c.Relayed && !o.Gone {
			return c.endQuestion()
		}
	}
	return c.tryNext(where, o)
}

// tryNext asks the next of the others. A request that may have been carried out is sent again only when that does no
// harm.
func (c Call) tryNext(where string, o Outcome) (Call, Step) {
	others, sent := c.Others, o.Result == Unanswered
	if c.Cmd == fileChunk && o.Busy {
		others = nil // the next chunk would continue where this one should have; the minion tries again
	}
	switch last := len(others) == 0; {
	case last && o.Down && c.mayWait():
		return c, Step{Action: DoWait, Where: where}
	case last && !sent && c.Relayed:
		return c, Step{Action: DoPassBack, Where: where, Down: o.Down}
	case last || sent && !c.Repeat || o.Gone || o.Closing:
		return c, Step{Action: DoAbandon, Where: where}
	}
	c.Others = others[1:]
	return c, c.failOverTo(others[0])
}

// failOverTo is a request's step to another node, or here.
func (c Call) failOverTo(next node.ID) Step {
	step := Step{Action: DoAskNode, Node: next}
	if next == c.Self {
		step = c.serveLocally()
	}
	step.Failover = true
	return step
}
