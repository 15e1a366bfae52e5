package edge

// unread is a publication that every Salt takes and leaves at that: "If it's not AES, and thus has not been verified,
// we do nothing" (salt/minion.py _handle_payload; proxies and syndics do the same).
var unread = []byte("\x81\xa3enc\xa5clear")

// signOfLife is what a subscriber gets so that its connection is not silent for long: a PING, or unread where its
// version of the protocol knows none (3.0). nil: it is subscribed to nothing, and nothing can be sent to it.
func (h *shard) signOfLife(s *sub) *chunk {
	if s.wire.pings() {
		return h.edge.ping[s.wire.transport()]
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	topic, subscribed := s.topics.any()
	switch {
	case !subscribed:
		return nil
	case s.topics.has(""), !s.encoding().topics:
		return h.edge.unread[s.wire.transport()]
	}
	return fixed(s.encoding().append(topicFrame(topic), unread))
}
