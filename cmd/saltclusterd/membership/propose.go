package membership

import (
	"context"
	"errors"
	"io"
	"net/http"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/consensus"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
)

// PathPropose is where members send proposals to the leader.
const PathPropose = "/v1/propose"

const (
	maxProposal = consensus.MaxForward
	maxResults  = 16 << 20
	// proposalPlaces is how many proposals of one member are worked on at a time.
	proposalPlaces = 128
)

// Handle routes the proposals of other members.
func (m *Member) Handle(mux *peerrpc.Mux) {
	mux.Handle("POST "+PathPropose, http.HandlerFunc(m.handlePropose))
	mux.Limit(PathPropose, proposalPlaces)
}

// forward sends a proposal to the leader (consensus.Config.Forward).
func (m *Member) forward(ctx context.Context, leader node.ID, req []byte) ([]byte, error) {
	return m.Call(ctx, http.MethodPost, leader, PathPropose, req, maxResults)
}

func (m *Member) handlePropose(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxProposal))
	if err != nil {
		http.Error(w, "proposal too large", http.StatusRequestEntityTooLarge)
		return
	}
	from, _ := peer.FromContext(r.Context())
	answer, err := m.Consensus.HandleForward(r.Context(), from, body)
	if err != nil {
		status := http.StatusInternalServerError
		if errors.Is(err, consensus.ErrInvalid) {
			status = http.StatusBadRequest
		}
		http.Error(w, err.Error(), status)
		return
	}
	_, _ = w.Write(answer)
}
