package drain

import (
	"fmt"
	"time"

	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/fsync/jobs"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/returns"
)

// Phase is how far a drain is.
type Phase string

// The phases of a drain, in their order.
const (
	Serving        Phase = "serving"
	Announced      Phase = "announced" // load balancers see it; all minions are still served
	HandingOver    Phase = "handing over"
	WaitingForJobs Phase = "waiting for jobs"
	Drained        Phase = "drained"
	Returning      Phase = "taking minions again"
)

// Options are what an operator wants of the next drain.
type Options struct {
	Over     time.Duration `json:"over,omitempty"` // zero: the option drain_time
	WaitJobs bool          `json:"wait_jobs,omitempty"`
}

// Report is how far the drain of a node is, and what the node still has.
type Report struct {
	Phase       Phase  `json:"phase"`
	Subscribers int    `json:"subscribers"`
	Connections int    `json:"connections"` // to the request port
	InFlight    int    `json:"in_flight"`
	Jobs        int    `json:"jobs"` // published here and waited for
	Leader      bool   `json:"leader,omitempty"`
	Kept        uint64 `json:"kept,omitempty"`     // returns kept for nodes that cannot be reached
	Deferred    uint64 `json:"deferred,omitempty"` // returns that wait for this node's master
	Unstored    uint64 `json:"unstored,omitempty"` // returns whose files and events are not made, or not copied
	Aside       int    `json:"aside,omitempty"`    // returns that its master does not answer, perhaps for ever
}

// sentence describes the report to an operator.
func (r Report) sentence(id node.ID) string {
	s := fmt.Sprintf("%s: %s; %s, %s left, %s in flight", id, r.Phase,
		wording.Plural(r.Subscribers, "subscriber"), wording.Plural(r.Connections, "request connection"),
		wording.Plural(r.InFlight, "request"))
	if r.Jobs > 0 {
		s += ", " + wording.Plural(r.Jobs, "job") + " published here " + wording.Choose(r.Jobs, "is", "are") + " running"
	}
	if r.Kept > 0 {
		s += ", " + wording.Plural(r.Kept, "return") + " kept for other nodes"
	}
	if r.Deferred > 0 {
		s += ", " + wording.Plural(r.Deferred, "return") + wording.Choose(r.Deferred, " waits", " wait") +
			" for its salt-master"
	}
	if r.Unstored > 0 {
		s += ", " + wording.Plural(r.Unstored, "return") + " to be stored or copied"
	}
	if r.Aside > 0 {
		s += ", " + returns.DescribeAside(r.Aside)
	}
	if r.Leader {
		s += ", it leads"
	}
	return s
}

// countUncopied counts what members that can be reached do not have yet of this node's job cache, as far as it is
// known: what is on its way, and all jobs where all are compared, count as one.
func countUncopied(st jobs.Status) (n uint64) {
	for _, p := range st.Peers {
		if !p.Off && p.Err == "" {
			n += uint64(p.Waiting + p.Dirty)
			if p.All || p.Busy {
				n++
			}
		}
	}
	return n
}
