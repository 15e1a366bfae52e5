package operator

import (
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
)

// Absence is why a node has no running membership. The zero value is a node that belongs to no cluster yet.
type Absence struct {
	Removed  string // the sentence about its removal; empty: it was not removed
	Rejoin   string // what an operator of a removed node can do
	Starting bool   // it has a membership, which is starting
}

const (
	startingText = "this node is a member of a cluster, and is starting"
	absentText   = "this node belongs to no cluster yet"
	absentHint   = "run saltclusterctl bootstrap here, or saltclusterctl join PEER"
)

// FindAbsence reads why a node without a running membership has none.
func FindAbsence(stateDir string) Absence {
	if left, err := membership.ReadRemoval(stateDir); err == nil && left != nil {
		return Absence{Removed: left.Sentence(), Rejoin: membership.RejoinHint}
	}
	record, err := membership.ReadRecord(stateDir)
	return Absence{Starting: err == nil && record != nil}
}

// Err is the answer to an operator who asks for something that needs a membership.
func (a Absence) Err() error {
	switch {
	case a.Removed != "":
		return adminapi.Errorf(adminapi.CodeNotMember, a.Rejoin, "%s", a.Removed)
	case a.Starting:
		return adminapi.Errorf(adminapi.CodeNotMember, "ask again: it takes seconds", startingText)
	}
	return adminapi.Errorf(adminapi.CodeNotMember, absentHint, absentText)
}

// Check is the result of the health check of the membership.
func (a Absence) Check() health.Result {
	switch {
	case a.Removed != "":
		return health.Result{Level: health.Fail, Reason: a.Removed, Hint: a.Rejoin, Maintenance: true}
	case a.Starting:
		return health.Result{Level: health.Fail, Reason: startingText, Hint: "it takes seconds"}
	}
	return health.Result{Level: health.Fail, Reason: absentText, Hint: absentHint, Maintenance: true}
}
