package joining

import (
	"encoding/json"
	"errors"
	"fmt"

	"saltclusterd/gossip/node"
)

// requestPayload is what a joining node tells a member (peer.JoinConfig.Payload). Versions without witnesses send an
// empty one.
type requestPayload struct {
	Witness bool `json:"witness,omitempty"`
	// Signs says that the node's master signs its public key (master_sign_pubkey).
	Signs bool `json:"signs,omitempty"`
	// Accepted are hashes of the keys that the node's master has accepted (localMinions.hashes).
	Accepted []byte `json:"accepted,omitempty"`
}

func parseRequestPayload(b []byte) (requestPayload, error) {
	var p requestPayload
	if len(b) == 0 {
		return p, nil
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return p, errors.New("malformed join request: do the nodes run the same version of saltclusterd?")
	}
	return p, nil
}

// replyPayload is what a node needs to start as a member, until consensus can tell it the rest.
type replyPayload struct {
	Version    int          `json:"version"`
	UUID       string       `json:"uuid"`
	Private    []byte       `json:"private"`           // cluster.pem
	Public     []byte       `json:"public"`            // cluster.pub
	Signing    []byte       `json:"signing,omitempty"` // what masters sign the public key with; only for who Signs
	Rev        uint64       `json:"rev"`
	Generation uint64       `json:"generation,omitempty"`
	Members    []node.Entry `json:"members"`
	GossipKeys [][]byte     `json:"gossip_keys"`
}

const replyVersion = 1

func parseReplyPayload(b []byte) (replyPayload, error) {
	var p replyPayload
	if err := json.Unmarshal(b, &p); err != nil {
		return p, fmt.Errorf("decode join reply: %w", err)
	}
	return p, nil
}
