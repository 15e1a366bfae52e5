package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/durable"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/wall"
)

// Which payload versions minions have proven to speak is kept on disk by the node that saw it and, where older versions are allowed
// at all, told to the others: a minion must not be pretended to be an old one at a node that has never met it.

const pathProtocols = "/v1/protocols"

const (
	protocolsFile = "protocols.json"
	maxProtocols  = 64 << 20 // bytes of a list
	// protocolsSave is how often new proofs are written to disk, protocolsHeard how often when and where minions were met,
	// protocolsShare how often other nodes are asked.
	protocolsSave  = 10 * time.Second
	protocolsHeard = 5 * time.Minute
	protocolsShare = time.Minute
)

func (s *service) protocolsPath() string {
	return filepath.Join(s.m.d.cfg.Paths.StateDir, protocolsFile)
}

// keyHash is the hash of the accepted key of a minion.
func (s *service) keyHash(id string) (wall.KeyHash, bool) {
	pub, ok := s.keys.Accepted(id)
	if !ok {
		return wall.KeyHash{}, false
	}
	return wall.HashKey(saltcrypt.CleanKey(pub)), true
}

// recallProtocols reads what this node has seen before. Without it, it is seen again.
func (s *service) recallProtocols() {
	text, err := os.ReadFile(s.protocolsPath())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var proofs []wall.Proof
	if err == nil {
		err = json.Unmarshal(text, &proofs)
	}
	if err != nil {
		s.m.log.Warn("protocols of minions not read", "path", s.protocolsPath(), "err", err)
		return
	}
	s.wall.Recall(proofs, s.keyHash)
	s.wall.TakeChanged()
}

// keepProtocols writes down what is new, and asks the other nodes for what they have seen.
func (s *service) keepProtocols(ctx context.Context) {
	save := time.NewTicker(protocolsSave)
	defer save.Stop()
	share := time.NewTicker(protocolsShare)
	defer share.Stop()
	heard := time.NewTicker(protocolsHeard)
	defer heard.Stop()
	for {
		select {
		case <-ctx.Done():
			if !s.handed.Load() { // else the other process writes it
				s.saveProtocols(s.wall.TakeHeard())
			}
			return
		case <-save.C:
			s.saveProtocols(false)
		case <-heard.C:
			s.saveProtocols(s.wall.TakeHeard())
		case <-share.C:
			s.shareProtocols(ctx)
		}
	}
}

func (s *service) saveProtocols(heard bool) {
	if !s.wall.TakeChanged() && !heard {
		return
	}
	text, err := json.Marshal(s.wall.Proofs())
	if err == nil {
		err = durable.WriteFile(s.protocolsPath(), append(text, '\n'), 0o600)
	}
	if err != nil {
		s.m.log.Warn("protocols of minions not stored", "err", err)
	}
}

// shareProtocols takes what other nodes have seen. When none but the newest version is let in there is no need to.
func (s *service) shareProtocols(ctx context.Context) {
	if s.m.d.cfg.Edge.RequestMinimumVersion >= sessionKeys {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
	defer cancel()
	all, _ := s.m.allProofs(ctx)
	for id, proofs := range all {
		if id != s.m.d.id {
			s.wall.Remember(proofs, s.keyHash)
		}
	}
}

// sessionKeys is the payload version that all supported minions speak.
const sessionKeys = 3

// allProofs asks every node which versions it has seen.
func (m *member) allProofs(ctx context.Context) (proofs map[node.ID][]wall.Proof, missing []string) {
	proofs = map[node.ID][]wall.Proof{m.d.id: m.svc.wall.Proofs()}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, n := range m.routes().Nodes {
		if n.ID == m.d.id {
			continue
		}
		wg.Go(func() {
			list, err := m.proofsOf(ctx, n.ID)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				missing = append(missing, string(n.ID))
				return
			}
			proofs[n.ID] = list
		})
	}
	wg.Wait()
	slices.Sort(missing)
	return proofs, missing
}

func (m *member) proofsOf(ctx context.Context, id node.ID) ([]wall.Proof, error) {
	return protocolsRPC.Call(ctx, m.client(), id, peerrpc.None{})
}

// A node lists which protocol versions it has seen of minions.
var protocolsRPC = peerrpc.Endpoint[peerrpc.None, []wall.Proof]{Method: http.MethodGet, Path: pathProtocols, MaxAnswer: maxProtocols}

func (m *member) listProtocols(context.Context, node.ID, peerrpc.None) ([]wall.Proof, error) {
	return m.svc.wall.Proofs(), nil
}
