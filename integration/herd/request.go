package herd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"saltclusterd/backoff"
)

// giveBack returns what came of a job (Minion._return_pub): return_retry_tries tries, each for one time out of
// return_retry_timer to return_retry_timer_max.
func (m *minion) giveBack(ctx context.Context, p *publication) {
	if d := between(0, m.herd.cfg.Think); d > 0 && !backoff.Sleep(ctx, d) {
		return
	}
	within := between(m.profile.ReturnTimer, m.profile.ReturnTimerMax)
	if _, err := m.ask(ctx, "_return", p.answer(), within, m.profile.ReturnTries); err != nil {
		if ctx.Err() == nil {
			m.herd.stats.returnLost(p.jid, fmt.Errorf("%s: return of %s: %w", m.who.ID, p.jid, err))
		}
		return
	}
	m.herd.stats.acked(p.jid, m.index)
}

// announce is what a minion sends when it has started (_fire_master_minion_start, _register_resources_with_master).
func (m *minion) announce(ctx context.Context) {
	event := map[string]any{
		"pretag": nil, "tag": "salt/minion/" + m.who.ID + "/start",
		"data": "Minion " + m.who.ID + " started at " + time.Now().Format(time.ANSIC),
	}
	if _, err := m.ask(ctx, "_minion_event", event, m.profile.StartTimeout, m.profile.ReturnTries); err != nil {
		m.herd.stats.announceLost()
	}
	if !m.profile.Resources {
		return
	}
	resources := map[string]any{"resources": map[string]any{}, "resource_grains": map[string]any{}}
	within := between(m.profile.ReturnTimer, m.profile.ReturnTimerMax)
	if _, err := m.ask(ctx, "_register_resources", resources, within, m.profile.ReturnTries); err != nil {
		m.herd.stats.announceLost()
	}
}

// ask sends a command over the minion's request channel (AsyncReqChannel.send): after a reply that cannot be opened it
// signs in and repeats the request; after a timeout the socket is made anew.
func (m *minion) ask(ctx context.Context, cmd string, fields map[string]any, within time.Duration,
	tries int) (plain []byte, err error) {
	m.reqMu.Lock()
	defer m.reqMu.Unlock()
	for try := range tries {
		if try > 0 {
			m.herd.stats.retried()
		}
		plain, err = m.transfer(ctx, cmd, fields, within)
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return plain, err
}

// errRefused is the AuthenticationError of a reply that is not sealed with the session.
var errRefused = errors.New("bad load")

func (m *minion) transfer(ctx context.Context, cmd string, fields map[string]any,
	within time.Duration) ([]byte, error) {
	plain, stamp, err := m.once(ctx, cmd, fields, within)
	if !errors.Is(err, errRefused) {
		return plain, err
	}
	m.herd.stats.badLoad()
	if err := m.authenticateAfter(ctx, stamp); err != nil {
		return nil, err
	}
	plain, _, err = m.once(ctx, cmd, fields, within)
	return plain, err
}

func (m *minion) once(ctx context.Context, cmd string, fields map[string]any,
	within time.Duration) ([]byte, int, error) {
	m.mu.Lock()
	creds, stamp := m.creds, m.stamp
	m.mu.Unlock()
	body, nonce, err := creds.Request(cmd, fields)
	if err != nil {
		return nil, stamp, err
	}
	if m.req == nil {
		m.req = openReq(ctx, m.herd.cfg.Dial, m.herd.reqAddr)
	}
	reply, err := m.req.ask(ctx, body, within)
	if err != nil || !m.herd.cfg.KeepRequests {
		m.req.close()
		m.req = nil
	}
	switch {
	case err != nil:
		return nil, stamp, err
	case Refused(reply):
		return nil, stamp, errRefused
	}
	plain, err := creds.Open(reply, nonce)
	if err != nil {
		m.herd.stats.wrong(fmt.Errorf("%s of %w", cmd, err))
	}
	return plain, stamp, err
}
