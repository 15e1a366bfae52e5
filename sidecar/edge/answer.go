package edge

import (
	"fmt"
	"sync"
	"sync/atomic"

	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/handover"
)

// Answer is the end of a request that was in flight when its connection was
// handed over: the old process found it, the new one writes it.
type Answer struct {
	Conn, Request uint64 // as numbered in the State
	Kind          AnswerKind
	Body          []byte
}

// AnswerKind tells what to do with a request that was taken over.
type AnswerKind uint8

// What the old process can say of a request.
const (
	Answered AnswerKind = iota // Body goes to the peer
	Dropped                    // no answer will come
	Unserved                   // Body is the request itself: it has not been acted on yet
)

type foreignKey struct{ conn, request uint64 }

type heldAnswer struct {
	request *Request
	body    []byte // nil: dropped
}

// answers are those of requests that are handed over.
type answers struct {
	mu      sync.Mutex
	held    []heldAnswer            // given while frozen, in order
	pass    func(Answer)            // after Hand: answers go there
	foreign map[foreignKey]*Request // taken over without their answers
	owed    atomic.Int64            // requests written down without their answers
}

// hold keeps the end of a request whose connection stands still, or passes it
// on. Called with the connection's lock.
func (e *ReqEdge) hold(r *Request, body []byte) {
	e.answers.mu.Lock()
	pass := e.answers.pass
	if pass == nil {
		e.answers.held = append(e.answers.held, heldAnswer{r, body})
	}
	e.answers.mu.Unlock()
	if pass != nil && r.conn.Handed() {
		pass(r.answer(body))
		e.answers.owed.Add(-1)
	}
}

func (r *Request) answer(body []byte) Answer {
	a := Answer{Conn: r.conn.number, Request: r.number, Kind: Answered, Body: body}
	if body == nil {
		a.Kind, a.Body = Dropped, r.Body
	}
	return a
}

// Hand closes our descriptors: another process has taken all over. The
// answers that are still found here are given to pass, from any goroutine; a
// Dropped one comes with the request's body. The edge is at its end; Close is
// still due.
func (e *ReqEdge) Hand(pass func(Answer)) {
	e.answers.mu.Lock()
	held := e.answers.held
	e.answers.held, e.answers.pass = nil, pass
	e.answers.mu.Unlock()
	for _, h := range held {
		c := h.request.conn
		c.Mu.Lock()
		handed := c.Handed() // else it has ended, and its number is another's
		c.Mu.Unlock()
		if handed {
			pass(h.request.answer(h.body))
			e.answers.owed.Add(-1)
		}
	}
	e.freezer.Finish(true)
	netconn.Wake(e.conns.All())
}

// Unanswered is the number of requests that were handed over and have not
// come to their end yet.
func (e *ReqEdge) Unanswered() int { return int(e.answers.owed.Load()) }

// Finish takes the end of a request that was taken over.
func (e *ReqEdge) Finish(a Answer) {
	e.answers.mu.Lock()
	r := e.answers.foreign[foreignKey{a.Conn, a.Request}]
	delete(e.answers.foreign, foreignKey{a.Conn, a.Request})
	e.answers.mu.Unlock()
	switch {
	case r == nil:
	case a.Kind == Answered:
		r.Reply(a.Body)
	case a.Kind == Unserved:
		r.Body = a.Body
		e.cfg.Handler.ServeReq(e.ctx, r)
	default:
		r.Drop()
	}
}

// Orphan drops the requests taken over whose end will not be told any more,
// and returns how many those were.
func (e *ReqEdge) Orphan() int {
	e.answers.mu.Lock()
	left := make([]*Request, 0, len(e.answers.foreign))
	for _, r := range e.answers.foreign {
		left = append(left, r)
	}
	clear(e.answers.foreign)
	e.answers.mu.Unlock()
	for _, r := range left {
		r.Drop()
	}
	return len(left)
}

// Append writes a down.
func (a Answer) Append() []byte {
	e := &handover.Encoder{}
	e.Uint(a.Conn)
	e.Uint(a.Request)
	e.Uint(uint64(a.Kind))
	e.Bytes(a.Body)
	return e.Record()
}

// ParseAnswer reads what Append wrote. The body is a part of record.
func ParseAnswer(record []byte) (Answer, error) {
	d := handover.NewDecoder(record)
	a := Answer{Conn: d.Uint(), Request: d.Uint(), Kind: AnswerKind(d.Int(int(Unserved)))}
	a.Body = d.Bytes()
	if err := d.End(); err != nil {
		return Answer{}, fmt.Errorf("answer: %w", err)
	}
	return a, nil
}
