package herd

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/zmtp"
)

// jidQueue is minion_jid_queue_hwm: a job that is among the last so many is not run again.
const jidQueue = 100

// minion is one of the herd. Its goroutine owns the publish side; returns have goroutines of their own and take turns.
type minion struct {
	herd    *Herd
	index   int
	profile Profile
	who     *Identity

	authMu sync.Mutex // one sign-in at a time, as AsyncAuth has it
	mu     sync.Mutex
	creds  *Credentials
	wallet *wallet
	serial uint64 // of the last publication opened with this key
	stamp  int    // how often it has signed in

	reqMu sync.Mutex // one request at a time
	req   *reqSocket

	jids    [jidQueue]string
	nextJid int
}

// run is the life of a minion process: it starts over when it has given up.
func (m *minion) run(ctx context.Context) {
	defer m.hangUp()
	for first := true; ctx.Err() == nil; first = false {
		if !first {
			m.herd.stats.restarted()
			if !backoff.Sleep(ctx, between(time.Second, m.profile.ReauthDelay)) {
				return
			}
		}
		if m.start(ctx, first) != nil {
			continue
		}
		m.listen(ctx)
	}
}

func (m *minion) hangUp() {
	m.reqMu.Lock()
	defer m.reqMu.Unlock()
	if m.req != nil {
		m.req.close()
		m.req = nil
	}
}

// start signs in and connects the request channel. The first sign-ins of a herd take turns, those that come later do
// not.
func (m *minion) start(ctx context.Context, first bool) error {
	if first {
		if !m.herd.enter(ctx) {
			return ctx.Err()
		}
		defer m.herd.leave()
	}
	if err := m.authenticate(ctx); err != nil {
		return err
	}
	m.reqMu.Lock()
	if m.req == nil && m.herd.cfg.KeepRequests {
		m.req = openReq(ctx, m.herd.cfg.Dial, m.herd.reqAddr)
	}
	m.reqMu.Unlock()
	return nil
}

// listen is the life of the subscription. It returns when the minion process would give up.
func (m *minion) listen(ctx context.Context) {
	first := between(m.profile.ReconDefault, m.profile.ReconDefault+m.profile.ReconMax)
	wait := backoff.Backoff{Min: min(first, m.profile.ReconMax), Max: m.profile.ReconMax}
	fresh := true // announce: it has (re)started
	for ctx.Err() == nil {
		z, err := m.subscribe(ctx)
		if err != nil {
			m.herd.stats.refused()
			if !wait.Wait(ctx) {
				return
			}
			continue
		}
		wait.Reset()
		m.herd.stats.subscribed(m.index)
		if fresh && m.herd.cfg.Announce {
			m.spawn(func() { m.announce(ctx) })
		}
		fresh = false
		m.hear(ctx, z)
		m.herd.stats.unsubscribed(m.index)
		if ctx.Err() != nil {
			return
		}
		if !m.profile.Monitor {
			if !wait.Wait(ctx) {
				return
			}
			continue
		}
		// __master_disconnected: sign in, subscribe anew, announce.
		if err := m.authenticate(ctx); err != nil {
			return
		}
		fresh = true
	}
}

func (m *minion) subscribe(ctx context.Context) (*zmtp.Client, error) {
	m.mu.Lock()
	port := m.creds.PublishPort
	m.mu.Unlock()
	z, err := connect(ctx, m.herd.cfg.Dial, net.JoinHostPort(m.herd.host, strconv.Itoa(port)), socketSub)
	if err != nil {
		return nil, err
	}
	if err := z.Subscribe(nil); err != nil {
		_ = z.Close()
		return nil, err
	}
	return z, nil
}

// hear takes publications until the connection ends.
func (m *minion) hear(ctx context.Context, z *zmtp.Client) {
	stop := context.AfterFunc(ctx, func() { _ = z.Close() })
	defer stop()
	defer z.Close()
	for {
		parts, err := z.ReadMessage()
		if err != nil {
			return
		}
		m.publication(ctx, parts[len(parts)-1])
	}
}

// publication is AsyncPubChannel._decode_payload and what follows.
func (m *minion) publication(ctx context.Context, body []byte) {
	o, held := m.open(body)
	if !o.ok {
		m.herd.stats.unreadable()
		if m.authenticateAfter(ctx, held) != nil {
			m.herd.stats.wrong(fmt.Errorf("%s: a publication is lost: sign-in failed", m.who.ID))
			return
		}
		if o, _ = m.open(body); !o.ok {
			m.herd.stats.discarded()
			return
		}
	}
	switch {
	case o.err != nil:
		m.herd.stats.wrong(fmt.Errorf("%s: publication: %w", m.who.ID, o.err))
	case !o.signed:
		m.herd.stats.wrong(fmt.Errorf("%s: a publication's signature is wrong", m.who.ID))
	case !m.advance(o.pub):
		m.herd.stats.stale()
	case o.job.isFor(m.who.ID) && !m.seen(o.job.jid):
		m.herd.stats.heard(o.job.jid, m.index)
		m.spawn(func() { m.giveBack(ctx, o.job) })
	}
}

// open opens a body with the key held now, and tells how many sign-ins that is the result of.
func (m *minion) open(body []byte) (*opened, int) {
	m.mu.Lock()
	w, stamp := m.wallet, m.stamp
	m.mu.Unlock()
	return w.open(body), stamp
}

// advance takes a publication's serial, which must grow as long as the key stays.
func (m *minion) advance(p saltwire.PubPeek) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.HasSerial && p.Serial <= m.serial {
		return false
	}
	if p.HasSerial {
		m.serial = p.Serial
	}
	return true
}

func (m *minion) seen(jid string) bool {
	for _, j := range m.jids {
		if j == jid {
			return true
		}
	}
	m.jids[m.nextJid] = jid
	m.nextJid = (m.nextJid + 1) % jidQueue
	return false
}

func (m *minion) spawn(f func()) { m.herd.wg.Go(f) }
