package state

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"

	"saltclusterd/gossip/node"
)

// JoinToken is a permission to join once. Only the key that proofs are checked
// with stands here: who reads the log, a witness or a backup cannot join with it.
type JoinToken struct {
	ID      string   `json:"id"`
	Public  []byte   `json:"public"`        // Ed25519
	Expires int64    `json:"expires"`       // Unix time in milliseconds
	For     node.ID  `json:"for,omitempty"` // the only node that may use it; empty: any
	Note    string   `json:"note,omitempty"`
	Used    TokenUse `json:"used,omitzero"`
	Rev     uint64   `json:"rev"`
	Audit
}

// TokenUse says who joined with a token; By is empty when no node did.
type TokenUse struct {
	By          node.ID `json:"by,omitempty"`
	Fingerprint string  `json:"fingerprint,omitempty"`
	At          int64   `json:"at,omitempty"`
}

// isSpent tells whether no further node can join with t at that time.
func (t JoinToken) isSpent(at int64) bool { return t.Used.By != "" || at > t.Expires }

// JoinSecret is a cluster secret that the cluster has agreed on.
type JoinSecret struct {
	N   uint64 `json:"n"` // counts from 1
	Key Secret `json:"key"`
	Rev uint64 `json:"rev"`
	Audit
}

// JoinSecrets is what the right to join is proven with, tokens aside. Number
// zero is the secret that each member has in its own configuration; it is in
// force until the first rotation.
type JoinSecrets struct {
	Current JoinSecret
	Former  JoinSecret // accepted beside the current one as long as Overlap holds
	Overlap bool
}

// Accepted tells whether the secret of that number opens the door.
func (s JoinSecrets) Accepted(n uint64) bool {
	return n == s.Current.N || s.Overlap && n == s.Former.N
}

// JoinTokens lists the tokens, oldest first, with those that are spent and not
// forgotten yet.
func (v View) JoinTokens() []JoinToken { return slices.Clone(v.get().tokens) }

// JoinToken finds a token.
func (v View) JoinToken(id string) (JoinToken, bool) {
	d := v.get()
	if i := d.tokenIndex(id); i >= 0 {
		return d.tokens[i], true
	}
	return JoinToken{}, false
}

// JoinSecrets are the cluster secrets that open the door.
func (v View) JoinSecrets() JoinSecrets { return v.get().secrets }

func (d *data) tokenIndex(id string) int {
	return slices.IndexFunc(d.tokens, func(t JoinToken) bool { return t.ID == id })
}

// validTokenID accepts what package jointoken makes, and what other versions of
// it may.
func validTokenID(id string) error {
	if len(id) < 4 || len(id) > MaxTokenID {
		return fmt.Errorf("token id of %d characters, 4 to %d are allowed", len(id), MaxTokenID)
	}
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return errors.New("token id is not lower-case letters and digits")
		}
	}
	return nil
}

func validToken(t JoinToken) error {
	errs := []error{validTokenID(t.ID), validText("note", t.Note, MaxText)}
	if len(t.Public) != ed25519.PublicKeySize {
		errs = append(errs, errors.New("the token's key is not an Ed25519 key"))
	}
	if t.Expires <= 0 {
		errs = append(errs, errors.New("the token never expires"))
	}
	if t.For != "" {
		errs = append(errs, validNode(t.For))
	}
	return errors.Join(errs...)
}

func validJoinSecret(s Secret) error {
	if s.Len() < MinJoinSecret || s.Len() > MaxJoinSecret {
		return fmt.Errorf("cluster secret is not %d to %d bytes", MinJoinSecret, MaxJoinSecret)
	}
	return nil
}

// Snapshot records. Each is there only when there is something to say.

type wireJoinSecret struct {
	N      uint64 `json:"n"`
	Key    []byte `json:"key,omitempty"`
	Former bool   `json:"former,omitempty"`
	Rev    uint64 `json:"rev,omitempty"`
	Audit
}

func (w *snapshotWriter) writeJoins(d *data) {
	for _, t := range d.tokens {
		w.writeRecord(recToken, t)
	}
	if s := d.secrets; s.Current.N > 0 {
		if s.Overlap {
			w.writeRecord(recJoinSecret, wireJoinSecret{s.Former.N, s.Former.Key.Bytes(), true, s.Former.Rev, s.Former.Audit})
		}
		w.writeRecord(recJoinSecret, wireJoinSecret{s.Current.N, s.Current.Key.Bytes(), false, s.Current.Rev,
			s.Current.Audit})
	}
}

func (r *snapshotReader) readToken(t JoinToken) error {
	if r.d.tokenIndex(t.ID) >= 0 || len(r.d.tokens) >= MaxTokens {
		return errors.New("duplicate token, or too many")
	}
	errs := []error{validToken(t), t.Audit.validate(), r.checkRevision(t.Rev, false)}
	if t.Used != (TokenUse{}) {
		errs = append(errs, validNode(t.Used.By), validFingerprint(t.Used.Fingerprint))
	}
	if t.Used.At < 0 {
		errs = append(errs, errors.New("negative time"))
	}
	r.d.tokens = append(r.d.tokens, t)
	return errors.Join(errs...)
}

func (r *snapshotReader) joinSecret(w wireJoinSecret) error {
	s := &r.d.secrets
	j := JoinSecret{w.N, NewSecret(w.Key), w.Rev, w.Audit}
	switch {
	case s.Current.N > 0, w.Former && s.Overlap, !w.Former && (w.N == 0 || s.Overlap && w.N != s.Former.N+1):
		return errors.New("cluster secrets out of order")
	case w.N == 0: // the configured one, which has nothing but its number
		if len(w.Key) > 0 || w.Rev != 0 || w.Audit != (Audit{}) {
			return errors.New("a configured secret with content")
		}
	default:
		if err := errors.Join(validJoinSecret(j.Key), w.Audit.validate(), r.checkRevision(w.Rev, false)); err != nil {
			return err
		}
	}
	if w.Former {
		s.Former, s.Overlap = j, true
		return nil
	}
	s.Current = j
	return nil
}
