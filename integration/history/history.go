package history

import "time"

// Outcome is what is known about the end of an operation.
type Outcome string

// Outcomes. Unknown may have happened, or may happen later.
const (
	OK      Outcome = "ok"
	Failed  Outcome = "failed" // it is certain that it did not happen
	Unknown Outcome = "unknown"
)

// Publication is one numbered job.
type Publication struct {
	Number     int
	Node       string // whose master published
	Start, End time.Time
	Outcome    Outcome
	Jid        string // empty: not known
	Error      string
}

// Run is a minion executing a publication.
type Run struct {
	Minion string
	Jid    string
	Number int
	At     time.Time
}

// Return is what a minion sent about a run.
type Return struct {
	Minion string
	Node   string // where it was sent to first
	Jid    string
	Number int
	At     time.Time
	Acked  time.Time // zero: the minion was not told that it is safe
	Tries  int
}

// Cached is one return in the job cache of a node, as Salt decodes it.
type Cached struct {
	Node   string
	Jid    string
	Minion string
	Number int    // what the job returned; -1 when it cannot be read
	Error  string // why it cannot be read
}

// Presence is a time in which a minion was subscribed.
type Presence struct {
	Minion   string
	Node     string    // empty: behind a load balancer, on any node
	Roams    bool      // it was up, and had to connect again when its node was gone
	From, To time.Time // To: alive for certain
	Ended    time.Time // and when it was found to have ended
	Why      string
}

// KeyVerb is what can be decided about a key.
type KeyVerb string

// Decisions about keys.
const (
	Accept KeyVerb = "accept"
	Delete KeyVerb = "delete"
)

// KeyOp is an operator's decision.
type KeyOp struct {
	Node       string
	Verb       KeyVerb
	ID         string
	Start, End time.Time
	Outcome    Outcome
	Error      string
}

// Probe is an attempt to use a key.
type Probe struct {
	ID     string
	Node   string
	What   string // "sign in", "request", "publication"
	At     time.Time
	Worked bool
	Detail string
}

// Sent is an event fired by a minion.
type Sent struct {
	Minion string
	Tag    string
	At     time.Time
	Acked  time.Time
}

// Heard is an event on a master's bus.
type Heard struct {
	Node string
	Tag  string
	At   time.Time
}

// Fault is something that was broken on purpose.
type Fault struct {
	Kind       string
	Nodes      []string    // nodes that may misbehave meanwhile
	Cuts       [][2]string // pairs of nodes that cannot hear each other meanwhile
	Outlasted  bool        // minions behind the load balancer miss nothing that other nodes publish meanwhile
	Caught     bool        // nor what its own nodes publish
	Start, End time.Time   // End: seen whole again; zero: never
}

// Note is a line for whoever reads the history.
type Note struct {
	At   time.Time
	Text string
}

// View is what one node says at the end.
type View struct {
	Node     string
	UUID     string              // of the cluster
	Identity string              // fingerprint of the cluster's master key, from master.pub
	AES      string              // fingerprint of the AES key that a minion gets here
	Epoch    uint64              // its number
	Leader   string              // as this node sees it
	Members  []string            // "id role state"
	Keys     map[string][]string // ids by state as stock salt-key lists them
}

// History is all of it.
type History struct {
	Seed         uint64
	Nodes        []string
	Start        time.Time
	Publications []Publication
	Runs         []Run
	Returns      []Return
	Cache        []Cached
	Presences    []Presence
	KeyOps       []KeyOp
	Probes       []Probe
	Sents        []Sent
	Heards       []Heard
	Faults       []Fault
	Notes        []Note
	Views        []View
}
