package takeover

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

// Kinds of messages between the old and the new process. A number is never used again.
const (
	msgHello    handover.Kind = 1  // new: version of the state and of the program
	msgBase     handover.Kind = 2  // old: what can be sent before the freeze, and all listening sockets
	msgPrepared handover.Kind = 3  // new: it could take over now
	msgRefuse   handover.Kind = 4  // new: why it cannot
	msgPublish  handover.Kind = 5  // old: the connections of 4505
	msgRequests handover.Kind = 6  // old: the connections of 4506
	msgFinal    handover.Kind = 7  // old: the final state, and the subscription to the master
	msgReady    handover.Kind = 8  // new: it has imported everything and uses nothing of it yet
	msgGo       handover.Kind = 9  // old: the new process serves from now on
	msgAnswer   handover.Kind = 10 // old: the end of a request that was in flight
	msgMain     handover.Kind = 11 // old: the service manager has the new process as the main one
	msgFree     handover.Kind = 12 // old: consensus and everything on disk is closed
	msgEnd      handover.Kind = 13 // old: there will be no more answers
)

// hello is the first message, from the new process.
type hello struct {
	State   uint64
	Version string
}

func (h hello) encodeRecord() []byte {
	e := &handover.Encoder{}
	e.Uint(h.State)
	e.String(h.Version)
	return e.Record()
}

// parseHello parses the hello of any version, which may contain more.
func parseHello(b []byte) (hello, error) {
	d := handover.NewDecoder(b)
	h := hello{State: d.Uint(), Version: d.String()}
	return h, d.Err()
}

// base is what the old process sends while it still serves.
type base struct {
	UUID     string
	Names    []string // of the descriptors of the message
	Snapshot []byte   // of consensus
	Jobs     jobList
}

// finalState is what the old process has when it is frozen.
type finalState struct {
	Snapshot     []byte // of consensus; empty: unchanged since base
	Clock        hlc.Timestamp
	Jobs         jobList // the latest
	Nodes        []router.Node
	Leader       node.ID
	Hub          []byte
	Recent       []byte // what the hub may deliver late
	Intake       []byte
	Subscription []byte // to the master; its descriptor is in the message; empty: there is none
}

// jobList is jobs and their publishers, the latest first.
type jobList struct {
	JIDs       []string
	Publishers []node.ID
}

func (b base) encodeRecord() []byte {
	e := &handover.Encoder{}
	e.String(b.UUID)
	e.Int(len(b.Names))
	for _, name := range b.Names {
		e.String(name)
	}
	e.Bytes(b.Snapshot)
	b.Jobs.encodeRecord(e)
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

func (f finalState) encodeRecord() []byte {
	e := &handover.Encoder{}
	e.Bytes(f.Snapshot)
	e.Uint(uint64(f.Clock))
	f.Jobs.encodeRecord(e)
	e.Int(len(f.Nodes))
	for _, n := range f.Nodes {
		encodeNode(e, n)
	}
	e.String(string(f.Leader))
	e.Bytes(f.Hub)
	e.Bytes(f.Recent)
	e.Bytes(f.Intake)
	e.Bytes(f.Subscription)
	return e.Record()
}

func parseFinalState(record []byte) (f finalState, err error) {
	d := handover.NewDecoder(record)
	f.Snapshot = d.Bytes()
	f.Clock = hlc.Timestamp(d.Int(math.MaxInt64))
	f.Jobs = parseJobs(d)
	for range d.Count() {
		f.Nodes = append(f.Nodes, decodeNode(d))
	}
	f.Leader = node.ID(d.String())
	f.Hub, f.Recent, f.Intake, f.Subscription = d.Bytes(), d.Bytes(), d.Bytes(), d.Bytes()
	return f, d.End()
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

func (l jobList) encodeRecord(e *handover.Encoder) {
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

// recordJobs adds the jobs to a table, the oldest first, because the table keeps their order.
func (l jobList) recordJobs(jobs *router.Jobs) {
	for i := len(l.JIDs) - 1; i >= 0; i-- {
		jobs.Record(l.JIDs[i], l.Publishers[i], 0)
	}
}

// jobsOf returns the ids of the jobs that a node published, the latest first.
func (l jobList) jobsOf(id node.ID) (jids []string) {
	for i, jid := range l.JIDs {
		if l.Publishers[i] == id {
			jids = append(jids, jid)
		}
	}
	return jids
}

// listJobs returns the n latest jobs.
func listJobs(jobs *router.Jobs, n int) (l jobList) {
	l.JIDs, l.Publishers = jobs.Latest(n)
	return l
}

func writeSnapshot(v state.View) ([]byte, error) {
	var b bytes.Buffer
	if err := v.WriteSnapshot(&b); err != nil {
		return nil, fmt.Errorf("write consensus down: %w", err)
	}
	return b.Bytes(), nil
}
