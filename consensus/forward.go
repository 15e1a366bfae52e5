package consensus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

// forwardVersion is the version of the messages between Forward and
// HandleForward.
const forwardVersion = 1

// MaxForward bounds a request to HandleForward, in bytes.
const MaxForward = state.MaxEntry + 1024

const (
	opPropose = "propose" // apply Request
	opRead    = "read"    // how far must a state be to be current?
)

type forwardRequest struct {
	V       int             `json:"v"`
	Op      string          `json:"op"`
	Request json.RawMessage `json:"request,omitempty"`
}

// Answers that are not results.
const (
	fwNotLeader = "not_leader" // Leader is a better address; nothing was done
	fwFailed    = "failed"     // try again; Maybe tells whether it may have been done
	fwInvalid   = "invalid"    // do not try again
)

type forwardReply struct {
	V       int            `json:"v"`
	Code    string         `json:"code,omitempty"`
	Message string         `json:"message,omitempty"`
	Leader  node.ID        `json:"leader,omitempty"`
	Maybe   bool           `json:"maybe,omitempty"`
	Index   uint64         `json:"index,omitempty"`
	Results []state.Result `json:"results,omitempty"`
}

// HandleForward answers a request that another node sent with its Forward
// function. The caller has made sure that it comes from that member, in whose
// name it is decided. A node that does not lead says so in the answer and does not pass the request on.
func (n *Node) HandleForward(ctx context.Context, from node.ID, req []byte) ([]byte, error) {
	rep := n.handleForward(ctx, from, req)
	rep.V = forwardVersion
	b, err := json.Marshal(rep)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return b, nil
}

func (n *Node) handleForward(ctx context.Context, from node.ID, b []byte) forwardReply {
	var msg forwardRequest
	if len(b) > MaxForward {
		return forwardReply{Code: fwInvalid, Message: "request too large"}
	}
	if json.Unmarshal(b, &msg) != nil || msg.V != forwardVersion {
		return forwardReply{Code: fwInvalid, Message: "request malformed or of another version"}
	}
	r, err := n.runningRaft()
	if err != nil {
		return forwardReply{Code: fwFailed, Message: err.Error()}
	}
	if !n.leads(r) {
		return forwardReply{Code: fwNotLeader, Leader: n.Leader()}
	}
	switch msg.Op {
	case opPropose:
		return n.handlePropose(ctx, from, msg.Request)
	case opRead:
		return n.handleRead(ctx, r)
	}
	return forwardReply{Code: fwInvalid, Message: "unknown operation"}
}

func (n *Node) handlePropose(ctx context.Context, from node.ID, b []byte) forwardReply {
	req, err := state.DecodeRequest(b)
	if err == nil {
		err = req.Validate()
	}
	if err != nil {
		return forwardReply{Code: fwInvalid, Message: err.Error()}
	}
	for i, c := range req.Commands {
		if _, birth := c.(state.Init); birth {
			return forwardReply{Code: fwInvalid, Message: "cluster.init cannot be forwarded"}
		}
		req.Commands[i] = state.ProposedBy(c, from)
	}
	o, fail := n.batch.submitRequest(ctx, req, len(b))
	switch {
	case fail == nil:
		return forwardReply{Results: o.results, Index: o.index}
	case errors.Is(fail.err, raft.ErrNotLeader):
		return forwardReply{Code: fwNotLeader, Leader: n.Leader()}
	case fail.final && errors.Is(fail.err, ErrInvalid):
		return forwardReply{Code: fwInvalid, Message: fail.Error()}
	}
	return forwardReply{Code: fwFailed, Message: fail.Error(), Maybe: fail.maybe}
}

// handleRead gives the index that makes a state current: a majority confirmed
// just now that this node leads, and what was acknowledged before is in its
// state.
func (n *Node) handleRead(ctx context.Context, r *raft.Raft) forwardReply {
	index, err := n.readIndex(ctx, r)
	if err != nil {
		return forwardReply{Code: fwFailed, Message: err.Error()}
	}
	return forwardReply{Index: index}
}

// readIndex takes at most Timing.Attempt: when this node's disk hangs, others may lead by then.
func (n *Node) readIndex(ctx context.Context, r *raft.Raft) (uint64, error) {
	if !n.Serving() {
		return 0, ErrNoLeader
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Timing.Attempt)
	defer cancel()
	index := n.View().Index()
	if err := askRaft(ctx, r.VerifyLeader); err != nil {
		return 0, err
	}
	return index, nil
}

// proposeAtLeader sends a request to the leader.
func (n *Node) proposeAtLeader(ctx context.Context, leader node.ID, req state.Request) (outcome, *attemptError) {
	body, err := state.EncodeRequest(req)
	if err != nil {
		return outcome{}, &attemptError{err: errors.Join(ErrInvalid, err), final: true}
	}
	rep, fail := n.callLeader(ctx, leader, forwardRequest{V: forwardVersion, Op: opPropose, Request: body})
	if fail != nil {
		return outcome{}, fail
	}
	if len(rep.Results) != len(req.Commands) {
		return outcome{}, &attemptError{err: fmt.Errorf("%s answered with %d results for %d commands", leader,
			len(rep.Results), len(req.Commands)), maybe: true, final: true}
	}
	return outcome{rep.Results, rep.Index}, nil
}

// callLeader is one forwarded request; every answer other than success is an error.
func (n *Node) callLeader(ctx context.Context, leader node.ID, msg forwardRequest) (forwardReply, *attemptError) {
	b, err := json.Marshal(msg)
	if err != nil {
		return forwardReply{}, &attemptError{err: err, final: true}
	}
	n.m.countForward()
	b, err = n.cfg.Forward(ctx, leader, b)
	if err != nil {
		return forwardReply{}, &attemptError{err: fmt.Errorf("ask %s: %w", leader, err), maybe: true}
	}
	var rep forwardReply
	if err := json.Unmarshal(b, &rep); err != nil || rep.V != forwardVersion {
		return forwardReply{}, &attemptError{err: fmt.Errorf("ask %s: the answer is malformed or of another version", leader),
			maybe: true}
	}
	switch rep.Code {
	case "":
		return rep, nil
	case fwNotLeader:
		return rep, &attemptError{err: &NotLeaderError{Leader: rep.Leader}}
	case fwInvalid:
		return rep, &attemptError{err: fmt.Errorf("%w: %s: %s", ErrInvalid, leader, rep.Message), final: true}
	}
	return rep, &attemptError{err: fmt.Errorf("%s: %s", leader, rep.Message), maybe: rep.Maybe}
}
