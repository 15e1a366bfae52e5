package adminapi

import (
	"fmt"
	"strings"
	"time"
)

// SyncPart is how far a node that joins or comes back is with one sort of state.
type SyncPart struct {
	Part  string    `json:"part"`            // log, keys, roots, grains, mines, tokens, jobs
	State string    `json:"state"`           // syncing, done, given_up, off
	Done  int64     `json:"done"`            // how much of the total has arrived
	Total int64     `json:"total,omitempty"` // 0: not known yet
	Unit  string    `json:"unit,omitempty"`  // items or bytes
	From  string    `json:"from,omitempty"`  // node from which the part is fetched
	Since time.Time `json:"since,omitzero"`
	Error string    `json:"error,omitempty"` // error of the last try
}

// Open says whether the part is still to be waited for.
func (p SyncPart) Open() bool { return p.State != "done" && p.State != "given_up" && p.State != "off" }

// SyncText says in a line what is still to be waited for; empty when nothing is.
func SyncText(parts []SyncPart) string {
	var out []string
	for _, p := range parts {
		switch {
		case !p.Open():
		case p.Total <= 0:
			out = append(out, p.Part)
		case p.Unit == "bytes":
			out = append(out, fmt.Sprintf("%s %d %%", p.Part, min(100*p.Done/p.Total, 100)))
		default:
			out = append(out, fmt.Sprintf("%s %d/%d", p.Part, p.Done, p.Total))
		}
	}
	return strings.Join(out, ", ")
}
