package operator

import (
	"net/http"
	"strings"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/consensus"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/localmaster"
)

// StatsPath is where a member answers its Stats.
const StatsPath = "/v1/stats"

const maxStats = 64 << 10 // bytes; members of before read 16 KiB

// Stats are what a member reports of itself.
type Stats struct {
	consensus.PeerStats
	Sync []adminapi.SyncPart `json:"sync,omitempty"` // what is not caught up yet
	Now  time.Time           `json:"now,omitzero"`   // by the clock of its host
	// Serial is the newest serial that it has stamped or seen.
	Serial hlc.Timestamp `json:"serial,omitempty"`
	// Identity is the fingerprint of the cluster's key as this node has it; IdentityShown: its master serves with it
	// after a change.
	Identity      string `json:"identity,omitempty"`
	IdentityShown bool   `json:"identity_shown,omitempty"`
	Unanswered    int    `json:"unanswered,omitempty"` // returns that its master does not answer
	// Reasons are the faults that its health checks find. A drain is not among them, because all members know of it.
	Reasons []adminapi.Reason `json:"reasons,omitempty"`
	// Own is what its master has for itself; nil: it does not report it.
	Own localmaster.Own `json:"own,omitempty"`
}

var statsRPC = peerrpc.Endpoint[peerrpc.None, Stats]{Method: http.MethodGet, Path: StatsPath, MaxAnswer: maxStats}

// Reasons returns the faults in a report that other members do not know of.
func Reasons(report health.Report) (out []adminapi.Reason) {
	for _, f := range report.Bad() {
		if f.Check != health.Draining {
			out = append(out, adminapi.Reason{Check: f.Check, Level: levelOf(f.Level), Message: f.Reason, Hint: f.Hint})
		}
	}
	return boundReasons(out)
}

func levelOf(l health.Level) adminapi.Level {
	if l == health.Fail {
		return adminapi.LevelFail
	}
	return adminapi.LevelWarn
}

// Bounds of the reasons of one node.
const (
	maxReasons    = 10
	maxReasonText = 500 // bytes
)

func boundReasons(list []adminapi.Reason) []adminapi.Reason {
	list = list[:min(len(list), maxReasons)]
	for i := range list {
		r := &list[i]
		if r.Level != adminapi.LevelFail {
			r.Level = adminapi.LevelWarn
		}
		for _, text := range []*string{&r.Check, &r.Message, &r.Hint} {
			*text = strings.ToValidUTF8((*text)[:min(len(*text), maxReasonText)], "")
		}
	}
	return list
}
