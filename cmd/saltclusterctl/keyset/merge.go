package keyset

import (
	"fmt"
	"maps"
	"slices"

	"saltclusterd/sidecar/adminapi"
)

// Cluster is the source that stands for what the cluster has.
const Cluster = "cluster"

// Base is what sets are merged into.
type Base struct {
	Name  string // Cluster, or the set that stands for it as long as there is none
	Rev   uint64
	Known map[string]Known
}

// Known is what the base has of an id.
type Known struct {
	State       string // of a key, or adminapi.KeyDeleted; empty: nothing but what is denied
	Fingerprint string
	Rev         uint64
	Denied      string // fingerprint
}

// SetBase has a set stand for the cluster.
func SetBase(s Set) Base {
	b := Base{Name: s.Name, Known: map[string]Known{}}
	for _, k := range s.Keys {
		known := b.Known[k.ID]
		if k.State == adminapi.KeyDenied {
			known.Denied = k.Fingerprint()
		} else {
			known.State, known.Fingerprint = k.State, k.Fingerprint()
		}
		b.Known[k.ID] = known
	}
	return b
}

// Kind says what the claims for an id come to.
type Kind string

// Kinds of rows.
const (
	Same     Kind = "same"     // the base has it like that
	New      Kind = "new"      // the base has nothing of it
	Decided  Kind = "decided"  // pending in the base, and decided about on another master
	Conflict Kind = "conflict" // a person has to decide
)

// Claim is what a source says of an id.
type Claim struct {
	Source      string `json:"source"`
	State       string `json:"state"`
	Fingerprint string `json:"fingerprint,omitempty"`

	pub string // empty: the base's own
}

func (c Claim) isSame(o Claim) bool { return c.State == o.State && c.Fingerprint == o.Fingerprint }

func (c Claim) isDecided() bool {
	return c.State == adminapi.KeyAccepted || c.State == adminapi.KeyRejected
}

// Row is an id and what is said of it.
type Row struct {
	ID      string  `json:"id"`
	Kind    Kind    `json:"kind"`
	Claims  []Claim `json:"claims"`            // the base's first
	Becomes *Claim  `json:"becomes,omitempty"` // nil: not decided

	known  Known
	denied []Key // by sets, in their order
}

// Merge is the sets and the base, id by id.
type Merge struct {
	Base Base
	Rows []Row // in the order of ids
}

// Compare puts sets beside the base. It decides every row that is not a conflict.
func Compare(base Base, sets []Set) *Merge {
	m := &Merge{Base: base}
	rows := map[string]*Row{}
	row := func(id string) *Row {
		if r, ok := rows[id]; ok {
			return r
		}
		r := &Row{ID: id, known: base.Known[id]}
		if r.known.State != "" {
			r.Claims = append(r.Claims, Claim{Source: base.Name, State: r.known.State, Fingerprint: r.known.Fingerprint})
		}
		rows[id] = r
		return r
	}
	for _, s := range sets {
		for _, k := range s.Keys {
			r := row(k.ID)
			if k.State == adminapi.KeyDenied {
				r.denied = append(r.denied, k)
				continue
			}
			r.Claims = append(r.Claims, Claim{Source: s.Name, State: k.State, Fingerprint: k.Fingerprint(), pub: k.Pub})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		r := rows[id]
		if len(r.Claims) == 0 { // it is denied everywhere, and has no key anywhere
			continue
		}
		r.decideRow()
		m.Rows = append(m.Rows, *r)
	}
	return m
}

// decideRow applies the rules.
func (r *Row) decideRow() {
	has := r.known.State != ""
	claims := r.countingClaims(has)
	best := claims[0]
	for _, c := range claims[1:] {
		switch {
		case best.State == adminapi.KeyDeleted, c.Fingerprint != best.Fingerprint, c.isDecided() && best.isDecided() &&
			c.State != best.State:
			r.Kind = Conflict
			return
		case c.isDecided() && !best.isDecided():
			best = c
		}
	}
	r.Becomes = &best
	switch {
	case !has:
		r.Kind = New
	case best.isSame(r.Claims[0]):
		r.Kind = Same
	default:
		r.Kind = Decided
	}
}

// countingClaims leaves out keys that the cluster has denied for this id while it has another one: that was decided
// before.
func (r *Row) countingClaims(has bool) []Claim {
	if !has || r.known.State == adminapi.KeyDeleted || r.known.Denied == "" || r.known.Denied == r.known.Fingerprint {
		return r.Claims
	}
	var out []Claim
	for _, c := range r.Claims {
		if c.Fingerprint != r.known.Denied {
			out = append(out, c)
		}
	}
	return out
}

// Take decides about an id: what source says of it counts.
func (m *Merge) Take(id, source string) error {
	at, ok := slices.BinarySearchFunc(m.Rows, id, func(r Row, id string) int {
		switch {
		case r.ID < id:
			return -1
		case r.ID > id:
			return 1
		}
		return 0
	})
	if !ok {
		return fmt.Errorf("none of the files has a key of %q", id)
	}
	r := &m.Rows[at]
	for _, c := range r.Claims {
		if c.Source == source {
			r.Becomes = &c
			return nil
		}
	}
	return fmt.Errorf("%s has no key of %s", source, id)
}

// Prefer decides about all conflicts that are still open and of which source says something.
func (m *Merge) Prefer(source string) {
	for i := range m.Rows {
		if r := &m.Rows[i]; r.Kind == Conflict && r.Becomes == nil {
			_ = m.Take(r.ID, source) // others stay open
		}
	}
}

// Open lists the conflicts that are not decided.
func (m *Merge) Open() []Row {
	var out []Row
	for _, r := range m.Rows {
		if r.Becomes == nil {
			out = append(out, r)
		}
	}
	return out
}

// Counts says how many rows there are of each kind.
func (m *Merge) Counts() map[Kind]int {
	n := map[Kind]int{}
	for _, r := range m.Rows {
		n[r.Kind]++
	}
	return n
}

// Puts is what the cluster has to be told.
func (m *Merge) Puts() []adminapi.PutKey {
	var out []adminapi.PutKey
	for _, r := range m.Rows {
		if p, ok := r.putFor(); ok {
			out = append(out, p)
		}
	}
	return out
}

func (r Row) putFor() (adminapi.PutKey, bool) {
	p := adminapi.PutKey{ID: r.ID, BaseRev: r.known.Rev}
	if r.Becomes == nil {
		return p, false
	}
	changed := r.Becomes.pub != "" && !r.Becomes.isSame(Claim{State: r.known.State, Fingerprint: r.known.Fingerprint})
	if changed {
		p.State, p.Pub = r.Becomes.State, r.Becomes.pub
	}
	if pub := r.deniedKey(); pub != "" {
		p.Denied = pub
	}
	return p, changed || p.Denied != ""
}

// deniedKey is the key that is to be denied beside the one that counts. It is empty when the cluster's own key gives
// way: the cluster denies that one on its own.
func (r Row) deniedKey() string {
	if r.Becomes.State == adminapi.KeyDeleted {
		return ""
	}
	if f := r.known.Fingerprint; f != "" && f != r.Becomes.Fingerprint {
		return ""
	}
	lost, told := "", false
	for _, c := range r.Claims {
		if c.Fingerprint == "" || c.Fingerprint == r.Becomes.Fingerprint {
			continue
		}
		told = told || c.Fingerprint == r.known.Denied
		if lost == "" {
			lost = c.pub
		}
	}
	switch {
	case told:
		return ""
	case lost != "" || r.known.Denied != "":
		return lost
	}
	for _, k := range r.denied {
		if k.Fingerprint() != r.Becomes.Fingerprint {
			return k.Pub
		}
	}
	return ""
}
