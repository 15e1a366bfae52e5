package fileserve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	transferIdle = 45 * time.Second // after that a minion has given up
	maxTransfers = 8192
	maxPins      = 128
)

// transferKey names the transfer of a file to a minion.
type transferKey struct{ minion, env, path string }

// transfer is what a minion has begun to fetch.
type transfer struct {
	id  identity
	rel string
	pin *pin // nil: it has been read to its end
	at  time.Time
}

// isAtEnd says whether nothing of the version is left at loc.
func (t *transfer) isAtEnd(loc int64) bool { return loc >= int64(t.id.size) }

// isKnown says whether it is known what the version has at loc.
func (t *transfer) isKnown(loc int64) bool { return t.pin != nil || t.isAtEnd(loc) }

// errUnpinned says that a version can no longer be read.
var errUnpinned = errors.New("the version this transfer began with is gone")

// transfers remembers which version each transfer began with, and holds those open that have more to be read.
type transfers struct {
	begun *lru[transferKey, *transfer]
	pins  *lru[identity, *pin]

	opening flights[identity, *pin]
	makers  *makers
	disk    slots
	timeout time.Duration // with a disk

	mu    sync.Mutex
	prune *time.Timer // nil: nothing is held open
	ended bool
}

func newTransfers(by *makers, disk slots, timeout time.Duration) *transfers {
	return &transfers{
		begun:  newLRU[transferKey, *transfer](maxTransfers, nil),
		pins:   newLRU[identity](maxPins, (*pin).closeFile),
		makers: by, disk: disk, timeout: timeout,
	}
}

// beginTransfer notes that a minion begins to fetch a file. When there is more of it than one chunk, it is held open:
// p, then, is what it is to be read from.
func (t *transfers) beginTransfer(key transferKey, f *found, now time.Time, more bool) (p *pin) {
	if more {
		if p = t.holdOpen(f, now); p == nil {
			t.begun.delete(key)
			return nil
		}
	}
	t.begun.put(key, &transfer{id: f.fileIdentity(), rel: f.rel, pin: p, at: now}, 1)
	return p
}

// holdOpen keeps a version open, once for all transfers of it.
func (t *transfers) holdOpen(f *found, now time.Time) *pin {
	id := f.fileIdentity()
	if p, ok := t.pins.get(id); ok && p.touchPin(now) {
		return p
	}
	// whoever is first waits for a disk, the others for him
	p, err := t.opening.doOnce(context.Background(), t.makers, id, func(ctx context.Context) (*pin, error) {
		if p, ok := t.pins.get(id); ok && p.touchPin(now) {
			return p, nil
		}
		if err := t.disk.takeSlot(ctx, t.timeout); err != nil {
			return nil, err
		}
		defer t.disk.freeSlot()
		file, err := f.openFile()
		if err != nil {
			return nil, err
		}
		p := &pin{file: file, at: now}
		return p, t.keepPin(id, p)
	})
	if err != nil {
		return nil
	}
	return p
}

// keepPin takes a pin in, unless everything has been let go of.
func (t *transfers) keepPin(id identity, p *pin) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		p.closeFile()
		return errUnpinned
	}
	t.pins.put(id, p, 1)
	if t.prune == nil {
		t.prune = time.AfterFunc(transferIdle, t.dropIdle)
	}
	return nil
}

// findReplaced returns a transfer whose file has been replaced by f, or removed; nil: the file is what it was, changed
// in place at most, or nothing is known.
func (t *transfers) findReplaced(key transferKey, f *found, now time.Time) *transfer {
	tr, ok := t.begun.get(key)
	if !ok || now.Sub(tr.at) > transferIdle && !tr.pin.usedSince(now.Add(-transferIdle)) {
		return nil
	}
	if tr.pin != nil && !tr.pin.touchPin(now) {
		return nil
	}
	if f != nil && f.fileIdentity().sameFile(tr.id) {
		return nil
	}
	return tr
}

// dropIdle closes the pins that have not been used for transferIdle.
func (t *transfers) dropIdle() {
	before := time.Now().Add(-transferIdle)
	// a transfer uses its pin without looking for it here: the order says nothing
	t.pins.dropIf(func(p *pin) bool { return !p.usedSince(before) })
	t.mu.Lock()
	defer t.mu.Unlock()
	if n, _ := t.pins.size(); n == 0 || t.ended {
		t.prune = nil
		return
	}
	t.prune.Reset(transferIdle / 3)
}

// close lets go of everything.
func (t *transfers) close() {
	t.mu.Lock()
	t.ended = true
	if t.prune != nil {
		t.prune.Stop()
	}
	t.mu.Unlock()
	t.pins.dropIf(func(*pin) bool { return true })
}

// pin is a version that is held open.
type pin struct {
	file *os.File

	mu     sync.Mutex
	closed bool
	at     time.Time // when it was last asked for
}

// touchPin notes that the pin is asked for; false: it is closed.
func (p *pin) touchPin(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = now
	return !p.closed
}

func (p *pin) usedSince(at time.Time) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed && !p.at.Before(at)
}

// openFile returns a descriptor of the caller's own.
func (p *pin) openFile() (*os.File, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errUnpinned
	}
	fd, err := unix.FcntlInt(p.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s again: %w", p.file.Name(), err)
	}
	return os.NewFile(uintptr(fd), p.file.Name()), nil
}

func (p *pin) closeFile() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		_ = p.file.Close()
	}
}
