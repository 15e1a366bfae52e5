package epochs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"saltclusterd/sidecar/saltcrypt"
)

// Signer makes the X9.31 signature of the cluster identity (saltcrypt.MasterKey).
type Signer interface {
	SignX931(msg []byte) ([]byte, error)
}

// Epoch is one generation of the cluster's AES key, as consensus decided it.
type Epoch struct {
	Number uint64
	Key    saltcrypt.Key
	// Rev is the revision of the state at which it began, RevokedRev that of the last removal of an accepted key. Whoever
	// was removed up to Rev does not have this epoch's key.
	Rev, RevokedRev uint64
}

// Material is an epoch with everything that is computed from it once. It is immutable.
type Material struct {
	Epoch
	Crypticle *saltcrypt.Crypticle
	KeyText   string // the 76 characters that minions receive as "aes"
	Sig       []byte // X9.31 over the hex SHA-256 of KeyText: "sig" of the _auth reply (salt/channel/server.py _auth)
}

// Manager hands out the epochs in force. It is safe for concurrent use.
type Manager struct {
	signer   Signer
	announce func(id string, epoch uint64)
	now      func() time.Time

	mu    sync.Mutex
	cur   *Material
	prev  *Material
	until time.Time // end of the window in which prev still seals
	given map[string]uint64
}

// New returns a manager without an epoch. announce, which may be nil, is told of each sign-in answered inside a window.
func New(signer Signer, now func() time.Time, announce func(id string, epoch uint64)) *Manager {
	return &Manager{signer: signer, announce: announce, now: now, given: map[string]uint64{}}
}

// Begin makes e the current epoch. It reports whether e was news; an epoch that is not above the current one changes
// nothing.
//
// It opens a window in which the one before may still seal, unless a key was taken away since that one began: its owner
// has it. This is judged by what this node holds and not by why e was begun: other rotations, of an operator or by age,
// may come between a removal and its own, and a node that was away skips epochs.
func (m *Manager) Begin(e Epoch, window time.Duration) (bool, error) {
	if cur := m.Current(); cur != nil && e.Number <= cur.Number {
		return false, nil
	}
	mat, err := m.newMaterial(e)
	if err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cur != nil && e.Number <= m.cur.Number {
		return false, nil
	}
	m.prev, m.until = nil, time.Time{}
	if m.cur != nil && e.RevokedRev <= m.cur.Rev && window > 0 {
		m.prev, m.until = m.cur, m.now().Add(window)
	}
	m.cur = mat
	clear(m.given)
	return true, nil
}

func (m *Manager) newMaterial(e Epoch) (*Material, error) {
	text := e.Key.Text()
	sig, err := Sign(m.signer, text)
	if err != nil {
		return nil, fmt.Errorf("sign epoch %d: %w", e.Number, err)
	}
	return &Material{Epoch: e, Crypticle: saltcrypt.NewCrypticle(e.Key), KeyText: text, Sig: sig}, nil
}

// Sign signs an epoch's key as minions receive it. The result is the "sig" of the _auth reply.
func Sign(signer Signer, text string) ([]byte, error) {
	digest := sha256.Sum256([]byte(text))
	return signer.SignX931([]byte(hex.EncodeToString(digest[:])))
}

// Current returns the current epoch, nil before the first Begin.
func (m *Manager) Current() *Material {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cur
}

// Sealing returns the epochs a publication must be sealed under now: the current one and, inside a window, the one
// before (else nil).
func (m *Manager) Sealing() (cur, prev *Material) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.endWindow()
	return m.cur, m.prev
}

// ForSignIn returns the epoch with which a sign-in of id is answered.
func (m *Manager) ForSignIn(id string) *Material {
	m.mu.Lock()
	m.endWindow()
	mat := m.cur
	if m.prev == nil {
		m.mu.Unlock()
		return mat
	}
	if m.given[id] == m.cur.Number {
		mat = m.prev
	}
	m.given[id] = mat.Number
	m.mu.Unlock()
	if m.announce != nil {
		m.announce(id, mat.Number)
	}
	return mat
}

// Given records that another node answered a sign-in of id with epoch.
func (m *Manager) Given(id string, epoch uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.endWindow()
	if m.prev != nil {
		m.given[id] = epoch
	}
}

// endWindow ends a window that is over. The caller holds mu.
func (m *Manager) endWindow() {
	if m.prev != nil && !m.now().Before(m.until) {
		m.prev = nil
		clear(m.given)
	}
}
