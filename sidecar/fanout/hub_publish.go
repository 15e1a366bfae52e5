package fanout

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/late"
	"saltclusterd/sidecar/saltwire"
)

// PeekLocal reads a publication of the local master, as Local wants it.
func (h *Hub) PeekLocal(plain []byte) (saltwire.PubPeek, error) {
	peek, err := saltwire.PeekPub(plain)
	if err != nil {
		h.metrics.refused.WithLabelValues("malformed").Inc()
		return peek, fmt.Errorf("read local publication: %w", err)
	}
	return peek, nil
}

// Local takes a publication of the local master, with what was read of it, and hands it to this node's subscribers and
// to every peer.
func (h *Hub) Local(p Publication, peek saltwire.PubPeek) error {
	arrived := h.now()
	if p.Topics == nil && peek.TgtType == "list" {
		p.Topics = listTopics(peek.Targets)
	}
	if peek.JID != "" {
		h.cfg.JobSeen(peek.JID, h.cfg.Self, p.Plain)
	}
	payload, err := appendPublication(nil, p)
	if err != nil {
		h.metrics.refused.WithLabelValues("too_long").Inc()
		return fmt.Errorf("local publication: %w", err)
	}
	h.rememberLate(peek.JID, h.cfg.Self, p, arrived, arrived)
	h.cfg.Hold() // before the epoch is read: a removed minion must not hear it at a peer either
	h.out.addRecord(kindPublication, h.cfg.Clock.Last(), payload, h.epochRecord())
	h.metrics.published.WithLabelValues("local").Inc()
	return h.deliverLocal(p, arrived)
}

// remotePublication implements sink.
func (h *Hub) remotePublication(origin node.ID, p Publication, at time.Time) {
	peek, err := saltwire.PeekPub(p.Plain)
	if err != nil {
		h.metrics.refused.WithLabelValues("malformed").Inc()
		h.cfg.Logger.Warn("publication of a peer refused", "node", origin, "err", err)
		return
	}
	if peek.JID != "" {
		h.cfg.JobSeen(peek.JID, origin, p.Plain)
	}
	h.metrics.published.WithLabelValues("peer").Inc()
	arrived := h.now()
	// a minion may have had it elsewhere
	if h.rememberLate(peek.JID, origin, p, at, arrived) && arrived.Sub(at) > lateFrom && !h.hasOldPeers() {
		h.isOverdue(overdue{late.Publication{JID: peek.JID, Plain: p.Plain, Topics: p.Topics, At: at, Origin: string(origin)},
			arrived})
		return
	}
	h.cfg.Hold() // publications of one origin come one after the other, so their order stays
	if err := h.deliverLocal(p, arrived); err != nil {
		h.metrics.refused.WithLabelValues("seal").Inc()
		h.cfg.Logger.Error("publication of a peer not delivered", "node", origin, "jid", peek.JID, "err", err)
	}
}

// earlierPublication implements sink.
func (h *Hub) earlierPublication(p Publication, at time.Time) {
	peek, err := saltwire.PeekPub(p.Plain)
	if err != nil {
		h.cfg.Logger.Warn("earlier publication refused, from a peer", "err", err)
		return
	}
	h.rememberLate(peek.JID, "", p, at, at)
}

// deliverLocal seals p, which has come at arrived, and hands it to this node's 4505.
func (h *Hub) deliverLocal(p Publication, arrived time.Time) error {
	if h.cfg.Withhold() {
		h.metrics.refused.WithLabelValues("behind").Inc()
		return nil
	}
	h.sealMu.Lock()
	defer h.sealMu.Unlock()
	began := time.Now()
	cur, prev, err := h.sealer.sealStamped(p.Plain)
	if err != nil {
		return err
	}
	h.metrics.seal.Observe(time.Since(began).Seconds())
	h.cfg.Edge.Publish(edge.Publication{Body: cur, Prev: prev, Topics: p.Topics, TopicOnly: p.TopicOnly})
	h.metrics.deliver.Observe(h.now().Sub(arrived).Seconds())
	return nil
}

// epochNumber is the number of the epoch in force, 0 before there is one.
func (h *Hub) epochNumber() uint64 {
	if cur, _ := h.cfg.Epochs.Sealing(); cur != nil {
		return cur.Number
	}
	return 0
}

// epochRecord says under which epoch at least the next publication is to be delivered.
func (h *Hub) epochRecord() []byte {
	if n := h.epochNumber(); n > 0 {
		return appendEpoch(nil, h.cfg.Clock.Last(), n)
	}
	return nil
}

// Nudge returns a publication for no minion, sealed under the current epoch: a minion that still holds the one before
// cannot open it and signs in again. It has no serial, which every version takes: it is sent to each minion at that
// one's turn, after publications that were stamped later.
func (h *Hub) Nudge() ([]byte, error) {
	return h.sealer.sealPlain(nudge)
}

// nudge is {"fun": "test.ping", "arg": [], "tgt": [], "jid": "0", "ret": "", "tgt_type": "list"}: complete enough for
// every minion version's target check, and an empty list matches no minion.
var nudge = []byte("\x86\xa3fun\xa9test.ping\xa3arg\x90\xa3tgt\x90\xa3jid\xa10\xa3ret\xa0\xa8tgt_type\xa4list")

// listTopics returns the topics of a list target for minions with zmq_filtering: the hex SHA-1 of each id
// (salt/transport/zeromq.py publish_payload).
func listTopics(ids []string) []string {
	topics := make([]string, 0, len(ids))
	for _, id := range ids {
		sum := sha1.Sum([]byte(id))
		topics = append(topics, hex.EncodeToString(sum[:]))
	}
	return topics
}

// remoteSignIn implements sink.
func (h *Hub) remoteSignIn(id string, epoch uint64) { h.cfg.SignedIn(id, epoch) }

// AnnounceSignIn tells the peers that id was answered with epoch (epochs.Manager's announce).
func (h *Hub) AnnounceSignIn(id string, epoch uint64) {
	h.out.addRecord(kindSignIn, h.cfg.Clock.Last(), appendSignIn(nil, id, epoch), nil)
}
