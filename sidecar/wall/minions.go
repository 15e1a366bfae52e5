package wall

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultMinions is how many minions are remembered unless told otherwise; one takes about 450 bytes.
const DefaultMinions = 65536

// KeyHash tells keys of one id apart.
type KeyHash [8]byte

// MarshalText writes it in hex.
func (k KeyHash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, k[:]), nil }

// UnmarshalText reads what MarshalText has written.
func (k *KeyHash) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(k)) {
		return hex.ErrLength
	}
	_, err := hex.Decode(k[:], text)
	return err
}

// HashKey is the hash of a key's text.
func HashKey(pub string) KeyHash {
	sum := sha256.Sum256([]byte(pub))
	return KeyHash(sum[:8])
}

// Minion is what is remembered of the owner of one key.
type Minion struct {
	ID  string
	Key KeyHash

	proven atomic.Int32 // the highest payload version that a request with a good token had; 0: there was none yet
	latest atomic.Int32 // that of the latest one
	seen   atomic.Int64 // when that was, Unix seconds; 0: not since the program was started

	// when the latest request came that no other node has relayed, Unix seconds; 0: none is remembered
	met      atomic.Int64
	from     atomic.Pointer[netip.Addr] // where it came from
	returned lastReturn                 // the latest return among them

	budget bucket
}

// Returned is a minion's return.
type Returned struct {
	JID string    `json:"jid"` // "req": of the minion's own
	Fun string    `json:"fun,omitempty"`
	At  time.Time `json:"at"`
}

// lastReturn is written with every return and read now and then: it keeps its memory.
type lastReturn struct {
	mu       sync.Mutex
	jid, fun []byte
	at       int64 // Unix seconds; 0: there was none
}

// setReturn copies: the texts are parts of what may be large.
func (l *lastReturn) setReturn(jid, fun string, at int64) {
	l.mu.Lock()
	l.jid, l.fun, l.at = append(l.jid[:0], jid...), append(l.fun[:0], fun...), at
	l.mu.Unlock()
}

// getReturn returns nil when there was none.
func (l *lastReturn) getReturn() *Returned {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == 0 {
		return nil
	}
	return &Returned{JID: string(l.jid), Fun: string(l.fun), At: time.Unix(l.at, 0).UTC()}
}

// Proven is the highest payload version that the key's owner has proven to speak, 0 when there is none.
func (m *Minion) Proven() int { return int(m.proven.Load()) }

// minions are remembered by their id. One whose key has changed is another one.
type minions struct {
	max int
	now func() time.Time

	mu      sync.RWMutex
	m       map[string]*Minion
	changed atomic.Bool // something is proven that was not
	heard   atomic.Bool // something was heard of
}

func newMinions(limit int, now func() time.Time) *minions {
	if limit <= 0 {
		limit = DefaultMinions
	}
	return &minions{max: limit, now: now, m: map[string]*Minion{}}
}

// Minion returns what is remembered of the owner of a key that is accepted for id; only accepted ids may come here. Nil
// for a nil Wall.
func (w *Wall) Minion(id, pub string) *Minion {
	if w == nil {
		return nil
	}
	return w.minions.findOrAdd(id, HashKey(pub))
}

func (t *minions) findOrAdd(id string, key KeyHash) *Minion {
	t.mu.RLock()
	m := t.m[id]
	t.mu.RUnlock()
	if m != nil && m.Key == key {
		return m
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if m = t.m[id]; m != nil && m.Key == key {
		return m
	}
	if m == nil {
		for old := range t.m { // any one: a larger fleet is remembered in part
			if len(t.m) < t.max {
				break
			}
			delete(t.m, old)
		}
	}
	m = &Minion{ID: id, Key: key}
	t.m[id] = m
	return m
}

// Proven notes that a request of a minion had a good token, and its payload version.
func (w *Wall) Proven(m *Minion, version int) {
	if w == nil || m == nil {
		return
	}
	v := int32(min(max(version, 0), maxVersion))
	m.latest.Store(v)
	m.seen.Store(w.cfg.Now().Unix())
	w.minions.raiseProven(m, v)
}

const maxVersion = 255

// Met notes where a request came from that its sender sent to this node itself, and what it returns.
func (w *Wall) Met(r *Request) {
	if w == nil || r.Minion == nil || r.Relayed {
		return
	}
	m, now := r.Minion, w.cfg.Now()
	m.met.Store(now.Unix())
	addr := r.Remote.Addr().Unmap()
	if old := m.from.Load(); old == nil || *old != addr {
		moved := addr // only who moves costs memory
		m.from.Store(&moved)
	}
	if r.Peek.Cmd == "_return" && r.Peek.JID != "" {
		m.returned.setReturn(r.Peek.JID, r.Peek.Fun, now.Unix())
	}
	if !w.minions.heard.Load() {
		w.minions.heard.Store(true)
	}
}

func (t *minions) raiseProven(m *Minion, v int32) {
	for {
		old := m.proven.Load()
		if v <= old {
			return
		}
		if m.proven.CompareAndSwap(old, v) {
			t.changed.Store(true)
			return
		}
	}
}

// Downgraded says whether to refuse a sign-in or request of that payload version because the owner of the key has
// proven to speak a higher one. It counts what it finds; found, if not nil, hears of it.
func (w *Wall) Downgraded(id, pub string, version int, found func(rule Rule, reason string, enforced bool)) bool {
	if w == nil || version > safeVersion || w.modes[ProtocolDowngrade] == Off {
		return false
	}
	w.minions.mu.RLock()
	m := w.minions.m[id]
	w.minions.mu.RUnlock()
	if m == nil || int(m.proven.Load()) <= version || m.Key != HashKey(pub) {
		return false
	}
	enforced := w.modes[ProtocolDowngrade] == Enforce
	w.counts.addFinding(ProtocolDowngrade, w.modes[ProtocolDowngrade], id, w.cfg.Now)
	if found != nil {
		found(ProtocolDowngrade, "protocol_downgrade", enforced)
	}
	return enforced
}

// safeVersion and later ones are what every supported Salt speaks: nothing is gained by refusing them for a higher one.
const safeVersion = 2

// Proof is what is remembered of a minion's protocol.
type Proof struct {
	ID      string    `json:"id"`
	Key     KeyHash   `json:"key"`
	Version int       `json:"version"`          // the highest that was proven
	Latest  int       `json:"latest,omitempty"` // of the latest request
	Seen    time.Time `json:"seen,omitzero"`    // when that was; zero: not since the program was started

	Met      time.Time  `json:"met,omitzero"`  // when the latest request came that the minion sent to this node itself
	From     netip.Addr `json:"from,omitzero"` // where from
	Returned *Returned  `json:"returned,omitempty"`
}

// Proofs lists what was proven.
func (w *Wall) Proofs() []Proof {
	if w == nil {
		return nil
	}
	w.minions.mu.RLock()
	defer w.minions.mu.RUnlock()
	out := make([]Proof, 0, len(w.minions.m))
	for _, m := range w.minions.m {
		p := Proof{ID: m.ID, Key: m.Key, Version: int(m.proven.Load()), Latest: int(m.latest.Load())}
		if at := m.seen.Load(); at != 0 {
			p.Seen = time.Unix(at, 0).UTC()
		}
		if at := m.met.Load(); at != 0 {
			p.Met = time.Unix(at, 0).UTC()
		}
		if from := m.from.Load(); from != nil {
			p.From = *from
		}
		p.Returned = m.returned.getReturn()
		if p.Version > 0 {
			out = append(out, p)
		}
	}
	return out
}

// Met is when and from where a minion sent its latest request to this node itself.
type Met struct {
	ID   string     `json:"id"`
	Key  KeyHash    `json:"key"`
	At   time.Time  `json:"at"`
	From netip.Addr `json:"from"`
}

// MetSince lists whom this node has met at that time or later.
func (w *Wall) MetSince(t time.Time) (out []Met) {
	if w == nil {
		return nil
	}
	w.minions.mu.RLock()
	defer w.minions.mu.RUnlock()
	for _, m := range w.minions.m {
		at, from := m.met.Load(), m.from.Load()
		if at != 0 && at >= t.Unix() && from != nil {
			out = append(out, Met{ID: m.ID, Key: m.Key, At: time.Unix(at, 0).UTC(), From: *from})
		}
	}
	return out
}

// Recall takes what this node knew before it was started: what Remember takes, and when and where it has met the
// minions.
func (w *Wall) Recall(proofs []Proof, key func(id string) (KeyHash, bool)) {
	w.Remember(proofs, key)
	if w == nil {
		return
	}
	for _, p := range proofs {
		w.minions.mu.RLock()
		m := w.minions.m[p.ID]
		w.minions.mu.RUnlock()
		if m == nil || m.Key != p.Key || p.Met.IsZero() || !m.met.CompareAndSwap(0, p.Met.Unix()) {
			continue
		}
		m.from.CompareAndSwap(nil, &p.From)
		if p.Returned != nil && m.returned.getReturn() == nil {
			m.returned.setReturn(p.Returned.JID, p.Returned.Fun, p.Returned.At.Unix())
		}
	}
}

// TakeHeard says whether anything was heard of minions since it was last asked.
func (w *Wall) TakeHeard() bool { return w != nil && w.minions.heard.Swap(false) }

// Remember takes which versions minions have proven to speak, before this node was started or to another one. Proofs
// about keys that are not, or no longer, accepted are passed over; key tells the hash of the accepted one.
func (w *Wall) Remember(proofs []Proof, key func(id string) (KeyHash, bool)) {
	if w == nil {
		return
	}
	for _, p := range proofs {
		if now, ok := key(p.ID); !ok || now != p.Key || p.Version <= 0 || p.Version > maxVersion {
			continue
		}
		w.minions.raiseProven(w.minions.findOrAdd(p.ID, p.Key), int32(p.Version))
	}
}

// TakeChanged says whether something was proven since it was last asked.
func (w *Wall) TakeChanged() bool { return w != nil && w.minions.changed.Swap(false) }
