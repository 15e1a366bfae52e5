package replica

import (
	"context"
	"io"
	"net/http"

	"saltclusterd/fsync/feed"
	"saltclusterd/gossip/node"
)

// Peer is what the senders of all stores embed.
type Peer[K comparable] struct {
	*feed.Line[K]
	call   func(ctx context.Context, to node.ID, body []byte, limit int64) ([]byte, error)
	failed func(to node.ID, err error)
}

// maxAck bounds the answer to Push, which is empty.
const maxAck = 1 << 10

// Push sends a body.
func (p *Peer[K]) Push(ctx context.Context, body []byte) error {
	_, err := p.Call(ctx, body, maxAck)
	return err
}

// Call sends a body and returns the answer, of at most limit bytes.
func (p *Peer[K]) Call(ctx context.Context, body []byte, limit int64) ([]byte, error) {
	return p.call(ctx, p.ID(), body, limit)
}

// First implements feed.Sender for stores in which nothing goes first.
func (p *Peer[K]) First(context.Context) (did bool, err error) { return false, nil }

// Failed implements feed.Sender.
func (p *Peer[K]) Failed(err error) { p.failed(p.ID(), err) }

func (r *Replica[K, S, M]) call(ctx context.Context, to node.ID, body []byte, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Pace.Call)
	defer cancel()
	return r.cfg.Peers.Call(ctx, to, r.spec.Path, body, limit)
}

func (r *Replica[K, S, M]) sendFailed(to node.ID, err error) {
	r.spec.Failures.WithLabelValues("push").Inc()
	r.cfg.Logger.Debug("not sent to a member", "store", r.spec.Name, "node", to, "err", err)
}

// Handler takes what other members send to the store's path.
func (r *Replica[K, S, M]) Handler() http.Handler { return http.HandlerFunc(r.serveHTTP) }

func (r *Replica[K, S, M]) serveHTTP(w http.ResponseWriter, req *http.Request) {
	from, ok := r.cfg.From(req.Context())
	switch {
	case !ok:
		http.Error(w, "not a member", http.StatusForbidden)
		return
	case r.spec.Off != "" && !r.spec.AnswersOff: // what they have is of no use here
		return
	}
	select {
	case r.bodies <- struct{}{}:
		defer func() { <-r.bodies }()
	case <-req.Context().Done():
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, r.spec.MaxBody))
	if err != nil {
		http.Error(w, "body too large", http.StatusRequestEntityTooLarge)
		return
	}
	m, err := r.spec.Decode(body)
	if err != nil {
		r.Fail("decode", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := r.spec.Take(from, m)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write(answer)
}

// PeerStatus tells how far another member is behind.
type PeerStatus struct {
	ID      node.ID
	Pending int    // items it has yet to get
	Err     string // of the last call; empty when it went well
}

// Peers returns the status of each member.
func (r *Replica[K, S, M]) Peers() (out []PeerStatus) {
	for _, l := range r.feed.Status() {
		p := PeerStatus{ID: l.ID, Pending: l.Pending}
		if l.Err != nil {
			p.Err = l.Err.Error()
		}
		out = append(out, p)
	}
	return out
}

// Progress tells of each member how much of what it has is here; nil while nothing is replicated.
func (r *Replica[K, S, M]) Progress() []feed.Progress { return r.feed.Progress() }
