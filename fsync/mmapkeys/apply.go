package mmapkeys

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// HiddenPrefix begins the keys that no roster shall have.
const HiddenPrefix = ".saltclusterd"

// Change is what is to become of one key.
type Change struct {
	Key   string
	Value []byte // empty: it is to be gone
	// Base is the entry that the change is based on; the zero Entry stands for none. Nil: whatever there is.
	Base   *Entry
	Hidden bool // not to be listed

	// After is set by Apply, when it has made the change: the entry as it is then; the zero Entry stands for none.
	After Entry
}

// Apply makes changes and says what became of each. A bank that is not there is made.
func (b *Bank) Apply(ctx context.Context, changes []Change) []error {
	errs := make([]error, len(changes))
	fail := func(err error) []error {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	lock, err := b.takeLock(ctx, unix.LOCK_EX)
	if err != nil {
		return fail(err)
	}
	defer lock.Close()
	if err := b.createFiles(); err != nil {
		return fail(wrapError("make", err))
	}
	t, err := b.openTable(os.O_RDWR)
	if err != nil {
		return fail(wrapError("write", err))
	}
	defer t.close()
	w, err := newWriter(t)
	if err != nil {
		return fail(wrapError("write", err))
	}
	for i := range changes {
		c := &changes[i]
		if errs[i] = w.changeEntry(c); errs[i] != nil {
			errs[i] = fmt.Errorf("write %q to key store: %w", c.Key, errs[i])
		}
	}
	if err := w.syncFiles(); err != nil {
		return fail(wrapError("write", err))
	}
	return errs
}
