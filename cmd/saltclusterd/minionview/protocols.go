package minionview

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/durable"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/wall"
)

// The node that has seen which payload version a minion speaks keeps that on disk. Where older versions are let in, the
// other nodes get it as well: an attacker must not present a minion as an old one to a node that has never met it.

// PathProtocols is the path at which a member lists the protocol versions that it has seen.
const PathProtocols = "/v1/protocols"

const (
	protocolsFile = "protocols.json"
	maxProtocols  = 64 << 20 // bytes of a list
	// proofsInterval is how often new proofs are written to disk, sightingsInterval how often when and where minions
	// were met.
	proofsInterval    = 10 * time.Second
	sightingsInterval = 5 * time.Minute
	// shareInterval is how often other nodes are asked.
	shareInterval = time.Minute
	// sessionKeys is the payload version that all supported minions speak.
	sessionKeys = 3
)

var protocolsRPC = peerrpc.Endpoint[peerrpc.None, []wall.Proof]{
	Method: http.MethodGet, Path: PathProtocols, MaxAnswer: maxProtocols,
}

func (v *View) listProofs(context.Context, node.ID, peerrpc.None) ([]wall.Proof, error) {
	return v.cfg.Wall.Proofs(), nil
}

func (c *Config) protocolsPath() string { return filepath.Join(c.StateDir, protocolsFile) }

// ReadProtocols reads what this node has seen before. Without it, it is seen again.
func (v *View) ReadProtocols() {
	path := v.cfg.protocolsPath()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var proofs []wall.Proof
	if err == nil {
		proofs, err = parseProofs(text)
	}
	if err != nil {
		v.cfg.Logger.Warn("protocols of minions not read", "path", path, "err", err)
		return
	}
	v.cfg.Wall.Recall(proofs, v.cfg.keyHash)
	v.cfg.Wall.TakeChanged()
}

func parseProofs(text []byte) (proofs []wall.Proof, err error) {
	err = json.Unmarshal(text, &proofs)
	return proofs, err
}

// KeepProtocols writes new proofs to disk and asks the other nodes for theirs, until ctx ends.
func (v *View) KeepProtocols(ctx context.Context) {
	proofs := time.NewTicker(proofsInterval)
	defer proofs.Stop()
	share := time.NewTicker(shareInterval)
	defer share.Stop()
	sightings := time.NewTicker(sightingsInterval)
	defer sightings.Stop()
	for {
		select {
		case <-ctx.Done():
			if !v.cfg.HandedOver() { // else the other process writes it
				v.writeProtocols(v.cfg.Wall.TakeHeard())
			}
			return
		case <-proofs.C:
			v.writeProtocols(false)
		case <-sightings.C:
			v.writeProtocols(v.cfg.Wall.TakeHeard())
		case <-share.C:
			v.fetchProtocols(ctx)
		}
	}
}

// writeProtocols writes the file if a minion has proven a higher version or, with sightings, in any case.
func (v *View) writeProtocols(sightings bool) {
	if !v.cfg.Wall.TakeChanged() && !sightings {
		return
	}
	text, err := json.Marshal(v.cfg.Wall.Proofs())
	if err == nil {
		err = durable.WriteFile(v.cfg.protocolsPath(), append(text, '\n'), 0o600)
	}
	if err != nil {
		v.cfg.Logger.Warn("protocols of minions not stored", "err", err)
	}
}

// fetchProtocols takes over what other nodes have seen. It is not needed when only the newest version is let in.
func (v *View) fetchProtocols(ctx context.Context) {
	if v.cfg.MinVersion >= sessionKeys {
		return
	}
	for _, proofs := range askOthers(ctx, v.cfg.Connections, protocolsRPC, peerrpc.None{}).Of {
		v.cfg.Wall.Remember(proofs, v.cfg.keyHash)
	}
}

// protocols lists which protocol version each accepted minion speaks, and when and where it was met last.
func (v *View) protocols(ctx context.Context) adminapi.Protocols {
	answers := askOthers(ctx, v.cfg.Connections, protocolsRPC, peerrpc.None{})
	answers.Of[v.cfg.Self] = v.cfg.Wall.Proofs()
	best := mergeProofs(answers.Of, v.cfg.keyHash)
	out := adminapi.Protocols{From: string(v.cfg.Self), Minions: []adminapi.MinionProtocol{}, Missing: answers.Missing()}
	for _, id := range v.cfg.Keys.IDs() {
		if p, ok := best[id]; ok {
			out.Minions = append(out.Minions, p)
		} else {
			out.Unheard = append(out.Unheard, id)
		}
	}
	slices.SortFunc(out.Minions, func(a, b adminapi.MinionProtocol) int { return cmp.Compare(a.ID, b.ID) })
	slices.Sort(out.Unheard)
	return out
}

// mergeProofs merges what the nodes have seen of each minion with its accepted key: the latest of everything, and the
// highest version. The node of a minion is the one that got its latest request from the minion itself, not by relay.
func mergeProofs(
	proofs map[node.ID][]wall.Proof, key func(id string) (wall.KeyHash, bool),
) map[string]adminapi.MinionProtocol {
	best, met := map[string]adminapi.MinionProtocol{}, map[string]time.Time{}
	for _, id := range slices.Sorted(maps.Keys(proofs)) {
		for _, p := range proofs[id] {
			if k, ok := key(p.ID); !ok || k != p.Key {
				continue
			}
			one, known := best[p.ID]
			one.ID, one.Version = p.ID, max(one.Version, p.Version)
			if p.Met.After(met[p.ID]) || met[p.ID].IsZero() && (!known || p.Seen.After(one.Seen)) {
				one.Node, one.Address, met[p.ID] = string(id), "", p.Met
				if p.From.IsValid() {
					one.Address = p.From.String()
				}
			}
			at := p.Seen
			if p.Met.After(at) {
				at = p.Met
			}
			if newer := at.After(one.Seen); newer || one.Latest == 0 {
				one.Latest = cmp.Or(p.Latest, one.Latest)
				if newer {
					one.Seen = at
				}
			}
			if r := p.Returned; r != nil && (one.Returned == nil || r.At.After(one.Returned.At)) {
				one.Returned = &adminapi.MinionReturn{JID: r.JID, Function: r.Fun, At: r.At}
			}
			best[p.ID] = one
		}
	}
	return best
}
