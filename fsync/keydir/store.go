package keydir

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/mmapkeys"
)

// store is the master's own key store, where it has one beside the directories (keys.cache_driver: mmap_key). It knows
// what was in it at the last look. It is used by one goroutine.
type store struct {
	geometry mmapkeys.Geometry
	banks    [2]*mmapkeys.Bank // keys, denied keys
	content  [2]mmapkeys.Content
	held     map[subject]held

	// onLostPages is told of a bank that has lost pages before the bank is repaired: afterwards the loss cannot be seen.
	onLostPages func(bank int) error

	due    bool      // something has changed there
	looked time.Time // end of the last look; zero: there was none
	took   time.Duration
}

// held is what the store has of a subject.
type held struct {
	entry
	garbage bool // what it has is not a key
	text    string
	raw     mmapkeys.Entry
}

const (
	// storeTimeout is how long the store's lock is waited for.
	storeTimeout = 3 * time.Second
	// repairs bounds how often a store that a crash has left crooked is put right in one look.
	repairs = 2
)

func newStore(pki string, g *mmapkeys.Geometry) (*store, error) {
	if g == nil {
		return nil, nil
	}
	st := &store{geometry: *g, held: map[subject]held{}}
	for i, name := range []string{mmapkeys.Keys, mmapkeys.DeniedKeys} {
		b, err := mmapkeys.NewBank(pki, name, *g)
		if err != nil {
			return nil, err
		}
		st.banks[i] = b
	}
	return st, nil
}

// fitsKey says whether the store can have a key of that name at all.
func (st *store) fitsKey(id string) bool { return len(id) <= st.geometry.KeySize }

func bankOf(s subject) int {
	if s.denied {
		return 1
	}
	return 0
}

// needsRead says whether there is a reason to look.
func (st *store) needsRead() bool {
	return st.due || st.looked.IsZero() || st.banks[0].Mark() != st.content[0].Mark ||
		st.banks[1].Mark() != st.content[1].Mark
}

// readChanges reads the store and returns the ids of which it has something else than before.
func (st *store) readChanges(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	began := time.Now()
	changed := map[string]struct{}{}
	for i := range st.banks {
		c, err := st.readBank(ctx, i)
		if err != nil {
			return nil, err
		}
		st.noteBank(i == 1, c, changed)
		st.content[i] = c
	}
	st.due = false
	st.looked = time.Now()
	st.took = st.looked.Sub(began)
	return slices.Collect(maps.Keys(changed)), nil
}

// readBank reads a bank, which it makes or puts right before when it has to.
func (st *store) readBank(ctx context.Context, i int) (c mmapkeys.Content, err error) {
	b := st.banks[i]
	for range repairs {
		c, err = b.Read(ctx, st.content[i].Entries, st.looked.IsZero())
		switch {
		case err != nil:
			return c, err
		case !c.Exists:
			b.Apply(ctx, nil)
		case c.Holes, c.Short:
			if err = st.onLostPages(i); err == nil {
				err = b.Repair(ctx)
			}
		case c.Inconsistent:
			err = b.Repair(ctx)
		default:
			return c, st.hideEntries(ctx, b, c)
		}
		if err != nil {
			return c, err
		}
	}
	if !c.Exists {
		return c, errNoStore
	}
	return c, nil
}

var errNoStore = errors.New("the master's key store cannot be made")

// hideEntries takes hidden entries off the roster again, where a repair by Salt has put them.
func (st *store) hideEntries(ctx context.Context, b *mmapkeys.Bank, c mmapkeys.Content) error {
	for _, e := range c.Entries {
		if e.Listed && !e.Damaged && strings.HasPrefix(e.Key, mmapkeys.HiddenPrefix) {
			err := b.Apply(ctx, []mmapkeys.Change{{Key: e.Key, Value: e.Value, Base: &e, Hidden: true}})[0]
			if err != nil && !errors.Is(err, mmapkeys.ErrChanged) {
				return err
			}
		}
	}
	return nil
}

// noteBank notes what is in a bank, and which ids differ from before.
func (st *store) noteBank(denied bool, c mmapkeys.Content, changed map[string]struct{}) {
	for id, e := range c.Entries {
		s := subject{id, denied}
		if state.ValidMinionID(id) != nil {
			continue
		}
		if old, ok := st.held[s]; ok && old.raw.Same(e) {
			continue
		}
		st.held[s] = heldOf(s, e)
		changed[id] = struct{}{}
	}
	for s := range st.held {
		if _, ok := c.Entries[s.id]; s.denied == denied && !ok {
			delete(st.held, s)
			changed[s.id] = struct{}{}
		}
	}
}

func heldOf(s subject, e mmapkeys.Entry) held {
	h := held{raw: e, entry: entry{State: deniedState}}
	text, ok := string(e.Value), !e.Damaged
	if !s.denied {
		var st byte
		st, text, ok = mmapkeys.DecodeKey(e.Value)
		h.State = stateOf(st)
	}
	text, err := checkText([]byte(text))
	if !ok || e.Damaged || err != nil {
		return held{raw: e, garbage: true}
	}
	h.text, h.Print = text, printOf(text)
	return h
}

func stateOf(b byte) state.KeyState {
	switch b {
	case mmapkeys.Accepted:
		return state.KeyAccepted
	case mmapkeys.Rejected:
		return state.KeyRejected
	}
	return state.KeyPending
}

func stateByte(s state.KeyState) byte {
	switch s {
	case state.KeyAccepted:
		return mmapkeys.Accepted
	case state.KeyRejected:
		return mmapkeys.Rejected
	}
	return mmapkeys.Pending
}

// storing is what the store is to have of a subject.
type storing struct {
	subject subject
	want    entry
	text    string
}

// writeEntries writes to the store, except where an entry has changed since it was found at the last look.
func (st *store) writeEntries(ctx context.Context, all []storing) []error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	errs := make([]error, len(all))
	for bank := range st.banks {
		var changes []mmapkeys.Change
		var at []int
		for i, w := range all {
			if bankOf(w.subject) == bank {
				changes, at = append(changes, st.changeFor(w)), append(at, i)
			}
		}
		if len(changes) == 0 {
			continue
		}
		for i, err := range st.banks[bank].Apply(ctx, changes) {
			if errs[at[i]] = err; err == nil {
				st.noteEntry(all[at[i]].subject, changes[i].After)
				st.content[bank].Wrote(changes[i].After)
			}
		}
		st.due = true
	}
	return errs
}

// noteEntry notes what was written, because the next look may be some time away.
func (st *store) noteEntry(s subject, e mmapkeys.Entry) {
	if e.Key == "" {
		delete(st.held, s)
		return
	}
	st.held[s] = heldOf(s, e)
}

func (st *store) changeFor(w storing) mmapkeys.Change {
	base := st.held[w.subject].raw
	c := mmapkeys.Change{Key: w.subject.id, Base: &base}
	switch {
	case w.want == entry{}:
	case w.subject.denied:
		c.Value = []byte(w.text)
	default:
		c.Value = mmapkeys.EncodeKey(stateByte(w.want.State), w.text)
	}
	return c
}

// hasKeys says whether there is any key in the store.
func (st *store) hasKeys() bool {
	for s := range st.held {
		if !s.denied {
			return true
		}
	}
	return false
}
