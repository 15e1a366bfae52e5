package spool

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"saltclusterd/durable"
)

// Consumer takes the records in order, each at least once.
type Consumer struct {
	// Name is that of its cursor's file: letters, digits, '-', '_'. A new name starts with the oldest record there is.
	Name string
	// Consume returns how many of the batch are done with, counted from its start. With an error the rest is offered
	// again after a pause; without one, at once. ctx ends when the spool closes. It must not keep the slice.
	Consume func(ctx context.Context, batch []Record) (done int, err error)
	// Gather, if set, says how long a batch that is all there is may wait for what else comes, so that several are
	// consumed at once.
	Gather func(batch []Record) time.Duration
	// Sync makes the effects of what Consume did survive a power loss. nil: they do already. With it, Consume must not
	// mind to be given again what it has done since the last checkpoint.
	Sync func(ctx context.Context) error
	// Once: with Sync, a kill of the process repeats nothing, as without Sync. The next process syncs the effects that
	// were not synced yet, wherever they are; they are lost where a file system is lost and the machine is not.
	Once bool
	// Optional: nothing depends on it. No record is kept for it that the others have done with, nor has it lost one that
	// it finds gone: it continues with the oldest record there is. Stats leave it out.
	Optional bool
}

// Config configures a Spool. Zero values take the defaults named.
type Config struct {
	Dir          string        // the journal's own directory, created 0700
	MaxBytes     int64         // of all segments (1 GiB)
	SegmentBytes int64         // of one (32 MiB)
	MaxRecord    int64         // bytes of one record (64 MiB)
	MaxWaiting   int64         // bytes that wait for the disk (128 MiB)
	GroupBytes   int64         // bytes written and synced at once at most (16 MiB)
	Hang         time.Duration // after which a disk that has not answered counts as failing (10 s)
	Gather       time.Duration // how long the first of a group waits for others (0: only while the disk is busy)

	BatchRecords int           // given to a consumer at once (256)
	BatchBytes   int64         // and their bytes (8 MiB)
	KeepBytes    int64         // recent records kept in memory for consumers (32 MiB)
	Checkpoint   time.Duration // how often a consumer's progress is made to survive a power loss (2 s)
	RetryMin     time.Duration // after a consumer's error: 20 ms, doubled up to
	RetryMax     time.Duration // 2 s

	Consumers []Consumer
	Disk      Disk
	Logger    *slog.Logger
	Register  prometheus.Registerer
}

// Disk is the seam at which tests let the disk fail. nil functions are the system's own.
type Disk struct {
	Write func(f *os.File, b []byte, at int64) (int, error)
	Sync  func(f *os.File) error
	Names func(dir string) error // brings the names in a directory to the disk
	All   func()                 // brings all file systems to their disks
	Boot  string                 // another boot id

	Remove func(path string) error // of a segment, while the journal is in use
}

func (c *Config) setDefaults() error {
	if c.Dir == "" {
		return fmt.Errorf("spool: no directory configured")
	}
	c.MaxBytes = cmp.Or(c.MaxBytes, 1<<30)
	c.SegmentBytes = cmp.Or(c.SegmentBytes, 32<<20)
	c.MaxRecord = cmp.Or(c.MaxRecord, 64<<20)
	c.MaxWaiting = cmp.Or(c.MaxWaiting, 128<<20)
	c.GroupBytes = cmp.Or(c.GroupBytes, 16<<20)
	c.Hang = cmp.Or(c.Hang, 10*time.Second)
	c.BatchRecords = cmp.Or(c.BatchRecords, 256)
	c.BatchBytes = cmp.Or(c.BatchBytes, 8<<20)
	c.KeepBytes = cmp.Or(c.KeepBytes, 32<<20)
	c.Checkpoint = cmp.Or(c.Checkpoint, 2*time.Second)
	c.RetryMin = cmp.Or(c.RetryMin, 20*time.Millisecond)
	c.RetryMax = max(cmp.Or(c.RetryMax, 2*time.Second), c.RetryMin)
	if c.Disk.Write == nil {
		c.Disk.Write = func(f *os.File, b []byte, at int64) (int, error) { return f.WriteAt(b, at) }
	}
	if c.Disk.Sync == nil {
		c.Disk.Sync = (*os.File).Sync
	}
	if c.Disk.Remove == nil {
		c.Disk.Remove = os.Remove
	}
	if c.Disk.Names == nil {
		c.Disk.Names = durable.SyncDir
	}
	if c.Disk.All == nil {
		c.Disk.All = unix.Sync
	}
	c.Disk.Boot = cmp.Or(c.Disk.Boot, durable.BootID())
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	seen := map[string]bool{}
	for _, k := range c.Consumers {
		if !validName(k.Name) || seen[k.Name] || k.Consume == nil {
			return fmt.Errorf("spool: consumer %q is not usable", k.Name)
		}
		seen[k.Name] = true
	}
	return nil
}

func validName(s string) bool {
	for _, c := range s {
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}
