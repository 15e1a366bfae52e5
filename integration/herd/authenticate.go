package herd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// errGaveUp is the SaltClientError of AsyncAuth._authenticate.
var errGaveUp = errors.New("sign-in failed")

// authenticateAfter signs in unless the minion has done so since the sign-in with that number.
func (m *minion) authenticateAfter(ctx context.Context, stamp int) error {
	m.authMu.Lock()
	defer m.authMu.Unlock()
	m.mu.Lock()
	done := m.stamp > stamp
	m.mu.Unlock()
	if done {
		return nil
	}
	return m.authenticateLocked(ctx)
}

// authenticate signs in, for as long as a minion does: it waits while its key is pending and gives up after auth_tries.
func (m *minion) authenticate(ctx context.Context) error {
	m.authMu.Lock()
	defer m.authMu.Unlock()
	return m.authenticateLocked(ctx)
}

func (m *minion) authenticateLocked(ctx context.Context) error {
	began := time.Now()
	m.herd.stats.signingIn(1)
	defer m.herd.stats.signingIn(-1)
	for ctx.Err() == nil {
		if !backoff.Sleep(ctx, 100*time.Millisecond) { // as _authenticate does before each attempt
			break
		}
		outcome, err := m.signIn(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			m.herd.stats.signInFailed(fmt.Errorf("%s: %w", m.who.ID, err))
			return errGaveUp
		case outcome == saltwire.AuthAccepted:
			m.herd.stats.signedIn(time.Since(began))
			return nil
		case outcome == saltwire.AuthPending:
			m.herd.stats.pended()
			backoff.Sleep(ctx, m.profile.AcceptanceWait)
		default:
			m.herd.stats.signInFailed(fmt.Errorf("%s: %s", m.who.ID, outcome))
			return errGaveUp
		}
	}
	return ctx.Err()
}

// signIn is one AsyncAuth.sign_in: as many tries with one nonce as auth_tries says, each on a socket of its own.
func (m *minion) signIn(ctx context.Context) (saltwire.AuthOutcome, error) {
	known := m.herd.knownMaster()
	s, err := m.who.SignIn(known)
	if err != nil {
		return saltwire.AuthError, err
	}
	body := s.Body()
	for try := range m.profile.AuthTries {
		m.herd.stats.try(try)
		sock := openReq(ctx, m.herd.cfg.Dial, m.herd.reqAddr)
		reply, err := sock.ask(ctx, body, m.profile.AuthTimeout)
		sock.close()
		if errors.Is(err, errTimeout) {
			continue
		}
		if err != nil {
			return saltwire.AuthError, err
		}
		outcome, creds, err := s.Check(reply, known)
		if err != nil {
			m.herd.stats.wrong(fmt.Errorf("%s: sign-in: %w", m.who.ID, err))
			return saltwire.AuthError, err
		}
		if creds != nil {
			m.take(creds)
		}
		return outcome, nil
	}
	return saltwire.AuthError, errTimeout
}

// take puts credentials in force; the serials start anew when a key has changed.
func (m *minion) take(c *Credentials) {
	w := m.herd.walletOf(c.AES, c.Master)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stamp++
	if m.creds != nil && m.wallet == w && m.creds.sessionKey == c.sessionKey {
		return
	}
	m.creds, m.wallet, m.serial = c, w, 0
}

// knownMaster is the master's key once one of the herd has met it: all pin the same.
func (h *Herd) knownMaster() *saltcrypt.PublicKey {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.master
}

// maxWallets bounds the keys that are remembered; a cluster has one or two at a time.
const maxWallets = 64

func (h *Herd) walletOf(key saltcrypt.Key, master *saltcrypt.PublicKey) *wallet {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.master == nil {
		h.master = master
	}
	if w := h.wallets[key]; w != nil {
		return w
	}
	if len(h.wallets) >= maxWallets {
		clear(h.wallets)
	}
	w := newWallet(key, h.master)
	h.wallets[key] = w
	return w
}
