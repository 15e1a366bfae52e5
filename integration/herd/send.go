package herd

import (
	"context"
	"errors"
	"fmt"
)

// Send has one minion send a command of the caller's over its request channel, once, as all its requests are sent, and
// returns the msgpack of the answer. The minion must have signed in.
func (h *Herd) Send(ctx context.Context, minion int, cmd string, fields map[string]any) ([]byte, error) {
	m := h.all[minion]
	m.mu.Lock()
	ready := m.creds != nil
	m.mu.Unlock()
	if !ready {
		return nil, errors.New("the minion has not signed in")
	}
	plain, err := m.ask(ctx, cmd, fields, m.profile.StartTimeout, 1)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", cmd, m.who.ID, err)
	}
	return plain, nil
}
