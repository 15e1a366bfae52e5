package edge

import (
	"saltclusterd/sidecar/edge/netconn"
	"slices"
	"strings"
)

// topics are the subscriptions of one connection. As in libzmq, who
// subscribes twice has to cancel twice.
type topics []topicCount

type topicCount struct {
	topic string
	n     int
}

// add counts a subscription and tells whether the topic is new.
func (t *topics) add(topic string) bool {
	for i := range *t {
		if (*t)[i].topic == topic {
			(*t)[i].n++
			return false
		}
	}
	*t = append(*t, topicCount{topic, 1})
	return true
}

// drop takes a subscription back and tells whether the topic is gone.
func (t *topics) drop(topic string) bool {
	for i := range *t {
		if (*t)[i].topic == topic {
			if (*t)[i].n--; (*t)[i].n > 0 {
				return false
			}
			*t = append((*t)[:i], (*t)[i+1:]...)
			return true
		}
	}
	return false
}

// count sets how often a topic is subscribed to.
func (t topics) count(topic string, n int) {
	for i := range t {
		if t[i].topic == topic {
			t[i].n = max(n, 1)
		}
	}
}

// has tells whether a topic is among them.
func (t topics) has(topic string) bool {
	return slices.ContainsFunc(t, func(c topicCount) bool { return c.topic == topic })
}

// covers tells whether a subscription is a prefix of topic.
func (t topics) covers(topic string) bool {
	return slices.ContainsFunc(t, func(c topicCount) bool { return strings.HasPrefix(topic, c.topic) })
}

// any is some topic: Salt's broadcast if it is among them.
func (t topics) any() (topic string, ok bool) {
	for _, c := range t {
		if topic, ok = c.topic, true; topic == broadcast {
			break
		}
	}
	return topic, ok
}

// longest is the longest topic.
func (t topics) longest() (topic string) {
	for _, c := range t {
		if len(c.topic) > len(topic) {
			topic = c.topic
		}
	}
	return topic
}

// subscription carries out a SUBSCRIBE or CANCEL.
func (s *sub) subscription(topic []byte, add bool) error {
	if !s.Ready() {
		return netconn.NewError(netconn.ReasonProtocol, "subscription before READY")
	}
	if add && (len(topic) > s.edge.cfg.MaxTopic || len(s.topics) >= s.edge.cfg.MaxSubscriptions) {
		return netconn.NewError(netconn.ReasonSubscriptions, "too many or too long subscriptions")
	}
	if add {
		s.shard.subscribe(s, string(topic))
	} else {
		s.shard.cancel(s, string(topic))
	}
	return nil
}
