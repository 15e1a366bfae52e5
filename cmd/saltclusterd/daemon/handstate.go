package daemon

import (
	"bytes"
	"fmt"
	"math"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/handover"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/router"
)

// What an old process says to the one that takes over, and what that one answers. Numbers are never used again.
const (
	sayHello    handover.Kind = 1  // new: version of the state and of the program
	sayBase     handover.Kind = 2  // old: what can be told beforehand, and everything that listens
	sayPrepared handover.Kind = 3  // new: it could take over now
	sayRefuse   handover.Kind = 4  // new: why it cannot
	sayPub      handover.Kind = 5  // old: the connections of 4505
	sayReq      handover.Kind = 6  // old: the connections of 4506
	sayRest     handover.Kind = 7  // old: everything else, and the subscription to the master
	sayReady    handover.Kind = 8  // new: it has everything and touches nothing
	sayGo       handover.Kind = 9  // old: it is yours
	sayAnswer   handover.Kind = 10 // old: the end of a request that was in flight
	sayMain     handover.Kind = 11 // old: the service manager knows the new process
	sayFree     handover.Kind = 12 // old: consensus and everything on disk is let go of
	sayEnd      handover.Kind = 13 // old: there will be no more answers
)

// hello is the new process's first word.
type hello struct {
	State   uint64
	Version string
}

func (h hello) encode() []byte {
	e := &handover.Encoder{}
	e.Uint(h.State)
	e.String(h.Version)
	return e.Record()
}

// parseHello reads the hello of any version, which may have more to say.
func parseHello(b []byte) (hello, error) {
	d := handover.NewDecoder(b)
	h := hello{State: d.Uint(), Version: d.String()}
	return h, d.Err()
}

// base is what can be told while the old process still serves.
type base struct {
	UUID     string
	Names    []string // of the files that come with it
	Snapshot []byte   // of consensus
	Jobs     jobList
}

// rest is what only holds while everything stands still.
type rest struct {
	Snapshot []byte // of consensus, empty: as before
	Clock    hlc.Timestamp
	Jobs     jobList // the latest
	Nodes    []router.Node
	Leader   node.ID
	Hub      []byte
	Recent   []byte // what the hub may give late
	Intake   []byte
	Sub      []byte // of the subscription to the master, whose descriptor comes with it; empty: there is none
}

// jobList is jobs and their publishers, the latest first.
type jobList struct {
	JIDs       []string
	Publishers []node.ID
}

func (b base) encode() []byte {
	e := &handover.Encoder{}
	e.String(b.UUID)
	e.Int(len(b.Names))
	for _, name := range b.Names {
		e.String(name)
	}
	e.Bytes(b.Snapshot)
	b.Jobs.encode(e)
	return e.Record()
}

func parseBase(record []byte) (b base, err error) {
	d := handover.NewDecoder(record)
	b.UUID = d.String()
	for range d.Count() {
		b.Names = append(b.Names, d.String())
	}
	b.Snapshot = d.Bytes()
	b.Jobs = parseJobs(d)
	return b, d.End()
}

func (r rest) encode() []byte {
	e := &handover.Encoder{}
	e.Bytes(r.Snapshot)
	e.Uint(uint64(r.Clock))
	r.Jobs.encode(e)
	e.Int(len(r.Nodes))
	for _, n := range r.Nodes {
		encodeNode(e, n)
	}
	e.String(string(r.Leader))
	e.Bytes(r.Hub)
	e.Bytes(r.Recent)
	e.Bytes(r.Intake)
	e.Bytes(r.Sub)
	return e.Record()
}

func parseRest(record []byte) (r rest, err error) {
	d := handover.NewDecoder(record)
	r.Snapshot = d.Bytes()
	r.Clock = hlc.Timestamp(d.Int(math.MaxInt64))
	r.Jobs = parseJobs(d)
	for range d.Count() {
		r.Nodes = append(r.Nodes, decodeNode(d))
	}
	r.Leader = node.ID(d.String())
	r.Hub, r.Recent, r.Intake, r.Sub = d.Bytes(), d.Bytes(), d.Bytes(), d.Bytes()
	return r, d.End()
}

func encodeNode(e *handover.Encoder, n router.Node) {
	e.String(string(n.ID))
	e.Int(n.Weight)
	for _, is := range []bool{n.Draining, n.Alive, n.MasterUp, n.TakesReturns, n.TakesMines, n.CachesPillars} {
		e.Bool(is)
	}
	e.Int(n.Major)
	e.Int(n.Load)
	e.String(n.MasterID)
}

func decodeNode(d *handover.Decoder) (n router.Node) {
	n.ID, n.Weight = node.ID(d.String()), d.Int(math.MaxInt32)
	for _, is := range []*bool{&n.Draining, &n.Alive, &n.MasterUp, &n.TakesReturns, &n.TakesMines, &n.CachesPillars} {
		*is = d.Bool()
	}
	n.Major, n.Load, n.MasterID = d.Int(math.MaxInt32), d.Int(math.MaxInt32), d.String()
	return n
}

func (l jobList) encode(e *handover.Encoder) {
	e.Int(len(l.JIDs))
	for i := range l.JIDs {
		e.String(l.JIDs[i])
		e.String(string(l.Publishers[i]))
	}
}

func parseJobs(d *handover.Decoder) (l jobList) {
	for range d.Count() {
		l.JIDs, l.Publishers = append(l.JIDs, d.String()), append(l.Publishers, node.ID(d.String()))
	}
	return l
}

// record notes the jobs, the oldest first, so that the table has them in order.
func (l jobList) record(jobs *router.Jobs) {
	for i := len(l.JIDs) - 1; i >= 0; i-- {
		jobs.Record(l.JIDs[i], l.Publishers[i], 0)
	}
}

// of lists what a node published, the latest first.
func (l jobList) of(id node.ID) (jids []string) {
	for i, jid := range l.JIDs {
		if l.Publishers[i] == id {
			jids = append(jids, jid)
		}
	}
	return jids
}

func latestJobs(jobs *router.Jobs, n int) (l jobList) {
	l.JIDs, l.Publishers = jobs.Latest(n)
	return l
}

func snapshotOf(v state.View) ([]byte, error) {
	var b bytes.Buffer
	if err := v.WriteSnapshot(&b); err != nil {
		return nil, fmt.Errorf("write consensus down: %w", err)
	}
	return b.Bytes(), nil
}
