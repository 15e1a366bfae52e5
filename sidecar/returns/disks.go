package returns

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// maxFormer bounds the former disks of one kind: the master's options may change while a disk does not answer.
const maxFormer = 8

// errOthersSync says that another caller got an error of the disk, which the kernel reports once.
var errOthersSync = errors.New("returns: written data may be lost, because another sync has failed")

// disks are those that hold what was written for some consumers: the one in use, and each former one until it has been
// synced after it was replaced.
type disks struct {
	syncing  sync.Mutex    // held while the disks are at work
	failures atomic.Uint64 // of syncs

	mu     sync.Mutex // guards what follows
	inUse  Disk       // nil: none
	former []Disk
	lost   bool // a former one was given up without a sync
}

// replaceDisk puts a disk in the place of the one in use; nil: none. Nothing is written to the former one any more.
func (d *disks) replaceDisk(now Disk) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now == d.inUse {
		return
	}
	d.former = slices.DeleteFunc(d.former, func(f Disk) bool { return f == now })
	if d.inUse != nil {
		d.former = append(d.former, d.inUse)
	}
	if len(d.former) > maxFormer {
		_ = d.former[0].Close()
		d.former, d.lost = d.former[1:], true
	}
	d.inUse = now
}

// newSync returns a function that syncs all that one caller has written since then. After an error it may be lost, also
// when the next sync finds nothing wrong: write it again.
func (d *disks) newSync() func(context.Context) error {
	seen := d.failures.Load()
	return func(ctx context.Context) error {
		d.syncing.Lock()
		defer d.syncing.Unlock()
		err := d.syncDisks(ctx)
		if err != nil {
			d.failures.Add(1)
		} else if seen != d.failures.Load() {
			err = errOthersSync
		}
		seen = d.failures.Load()
		return err
	}
}

// syncDisks syncs each disk, and forgets the former ones: after an error all is written to the one in use. It wants
// syncing.
func (d *disks) syncDisks(ctx context.Context) error {
	d.mu.Lock()
	inUse, former, lost := d.inUse, d.former, d.lost
	d.former, d.lost = nil, false
	d.mu.Unlock()
	var errs []error
	if lost {
		errs = append(errs, errOthersSync)
	}
	if inUse != nil {
		errs = append(errs, inUse.Sync(ctx))
	}
	for _, f := range former {
		errs = append(errs, f.Sync(ctx))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range former {
		if f != d.inUse {
			_ = f.Close()
		}
	}
	return errors.Join(errs...)
}

func (d *disks) closeDisks() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, f := range d.former {
		errs = append(errs, f.Close())
	}
	if d.inUse != nil {
		errs = append(errs, d.inUse.Close())
	}
	return errors.Join(errs...)
}
