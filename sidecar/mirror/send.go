package mirror

import (
	"context"
	"slices"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/gossip/node"
)

const (
	sendTimeout = 10 * time.Second
	// idle is after which time without an event a node's queue and sender go.
	idle = time.Minute
)

// sendQueue sends what waits for a node until it is a member no more, or for long nothing came.
func (m *Mirror) sendQueue(to node.ID, q *queue) {
	pause := backoff.Backoff{Min: m.c.BackoffMin, Max: m.c.BackoffMax}
	for {
		b, old := q.takeBatch()
		m.metrics.countDropped("old", old)
		if len(b.events) == 0 {
			if !m.awaitEvent(to, q) {
				return
			}
			continue
		}
		ctx, cancel := context.WithTimeout(m.ctx, sendTimeout)
		err := m.c.Send(ctx, to, b.encodeBatch())
		cancel()
		if err == nil {
			pause.Reset()
			q.removeSent(b.first + uint64(len(b.events)))
			m.metrics.sent.Add(float64(len(b.events)))
			continue
		}
		m.c.Logger.Debug("events not mirrored", "node", to, "err", err)
		if !pause.Wait(m.ctx) {
			return
		}
	}
}

// awaitEvent waits until something is in the queue; false: its sender is to end.
func (m *Mirror) awaitEvent(to node.ID, q *queue) bool {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return false
		case <-q.wake:
			return true
		case <-timer.C:
		}
		if !slices.Contains(m.c.Members(), to) && m.forgetQueue(to, q) {
			return false
		}
		timer.Reset(idle)
	}
}

// forgetQueue drops the queue of a node that has left, unless something came meanwhile.
func (m *Mirror) forgetQueue(to node.ID, q *queue) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b, _ := q.takeBatch(); len(b.events) > 0 {
		return false
	}
	delete(m.queues, to)
	return true
}
