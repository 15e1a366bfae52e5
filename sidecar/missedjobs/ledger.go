package missedjobs

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

const (
	// ledgerSlots is the number of jobs in a ledger. With the default job timeout of 15 s and maxIDSkew that is enough for
	// 117 jobs a second.
	ledgerSlots = 4096
	slotSize    = 8 + 8 + 8 + keySize // sequence number, time seen, reach; big endian, Unix time in ns
	keySize     = 16
	headSize    = 8 + 32 + 8 // magic, boot, reach
	ledgerSize  = headSize + ledgerSlots*slotSize
)

// ledgerMagic changes with the format. A file in another format is replaced.
const ledgerMagic = "SCDSEEN1"

// key is a hash of a job id.
type key [keySize]byte

func keyOf(jid string) (k key) {
	sum := sha256.Sum256([]byte(jid))
	copy(k[:], sum[:])
	return k
}

type seenJob struct {
	key key
	at  time.Time
}

// Ledger records in a file which jobs were seen last. Each job costs one write and no sync, so the file is valid after
// a kill and void after a reboot. A Ledger is safe for concurrent use.
type Ledger struct {
	path string
	boot [32]byte
	now  func() time.Time

	mu     sync.Mutex
	file   *os.File  // nil: not open, or a write failed
	stale  bool      // the file lacks jobs and could not be removed yet
	seq    uint64    // of the next slot
	ring   []seenJob // oldest first
	known  map[key]bool
	reach  time.Time // every job seen since then is in the ledger
	opened bool
}

// NewLedger returns a ledger backed by the file path. boot identifies the boot of the machine. Jobs recorded before
// Open are kept and written by Open.
func NewLedger(path, boot string, now func() time.Time) *Ledger {
	return &Ledger{path: path, boot: sha256.Sum256([]byte(boot)), now: now, known: map[key]bool{}}
}

// Open reads the file or creates it. After an error the ledger works in memory only.
func (l *Ledger) Open() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	early := l.ring
	l.opened, l.ring, l.seq, l.known = true, nil, 0, map[key]bool{}
	l.reach = l.firstReach()
	var err error
	if l.file, err = os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		l.file, l.stale = nil, true
		l.addAll(early)
		return fmt.Errorf("open ledger of seen jobs: %w", err)
	}
	if !l.readFile() {
		err = l.createFile()
	}
	if err != nil {
		l.dropFile()
	}
	l.addAll(early)
	return err
}

// readFile loads what an earlier process recorded. It returns false if the file is not usable.
func (l *Ledger) readFile() bool {
	b, err := io.ReadAll(io.LimitReader(l.file, ledgerSize+1))
	if err != nil || len(b) != ledgerSize || !bytes.Equal(b[:8], []byte(ledgerMagic)) || !bytes.Equal(b[8:40], l.boot[:]) {
		return false
	}
	l.reach = readTime(b[40:])
	type slot struct {
		seenJob
		seq   uint64
		reach time.Time
	}
	last := uint64(0)
	slots := make(map[uint64]slot)
	for i := range ledgerSlots {
		raw := b[headSize+i*slotSize:]
		s := slot{seq: binary.BigEndian.Uint64(raw), reach: readTime(raw[16:])}
		if s.seq == 0 || s.seq%ledgerSlots != uint64(i) {
			continue
		}
		s.at = readTime(raw[8:])
		copy(s.key[:], raw[24:])
		slots[s.seq] = s
		last = max(last, s.seq)
	}
	first := last - min(last, ledgerSlots) + 1
	for seq := first; seq <= last; seq++ {
		s, ok := slots[seq]
		if !ok { // lost, although a later one was written
			return false
		}
		l.ring = append(l.ring, s.seenJob)
		l.known[s.key] = true
		if s.reach.After(l.reach) {
			l.reach = s.reach
		}
	}
	l.seq = last
	return true
}

// firstReach is the reach of a ledger without a past. The file of a job that a peer published is as old as the peer's
// clock says.
func (l *Ledger) firstReach() time.Time { return l.now().Add(maxIDSkew) }

// createFile writes an empty ledger at its full size, so that a full disk cannot stop later writes.
func (l *Ledger) createFile() error {
	l.ring, l.seq, l.known, l.reach = nil, 0, map[key]bool{}, l.firstReach()
	b := make([]byte, ledgerSize)
	copy(b, ledgerMagic)
	copy(b[8:], l.boot[:])
	writeTime(b[40:], l.reach)
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("create ledger of seen jobs: %w", err)
	}
	if _, err := l.file.WriteAt(b, 0); err != nil {
		return fmt.Errorf("create ledger of seen jobs: %w", err)
	}
	return nil
}

// Remove closes the ledger and removes its file.
func (l *Ledger) Remove() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropFile()
}

// dropFile removes the file, so that no later process trusts an incomplete one. On a file system that is read-only now
// that fails, and is tried again with each job: it may be writable again when the next process starts. The caller holds
// mu.
func (l *Ledger) dropFile() {
	if l.file != nil {
		_ = l.file.Truncate(0)
		_ = l.file.Close()
		l.file, l.stale = nil, true
	}
	if l.stale {
		err := os.Remove(l.path)
		l.stale = err != nil && !errors.Is(err, fs.ErrNotExist)
	}
}

// Close closes the file.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		l.dropFile()
		return nil
	}
	f := l.file
	l.file = nil
	return f.Close()
}

// Record records a job as seen. It returns an error once, when the file can no longer be written; the next process then
// starts without a past.
func (l *Ledger) Record(jid string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := keyOf(jid)
	if l.known[k] {
		return nil
	}
	return l.addJob(seenJob{k, l.now()})
}

func (l *Ledger) addAll(jobs []seenJob) {
	for _, j := range jobs {
		if !l.known[j.key] {
			_ = l.addJob(j) // after a failure the file is gone
		}
	}
}

// addJob records one job. The caller holds mu.
func (l *Ledger) addJob(j seenJob) error {
	if len(l.ring) == ledgerSlots {
		// The file of a job that a peer sent may be younger than the moment in which the job was seen.
		if forgotten := l.ring[0].at.Add(maxIDSkew); forgotten.After(l.reach) {
			l.reach = forgotten
		}
		delete(l.known, l.ring[0].key)
		l.ring = l.ring[1:]
	}
	l.ring = append(l.ring, j)
	l.known[j.key] = true
	l.seq++
	if l.file == nil {
		l.dropFile()
		return nil
	}
	var raw [slotSize]byte
	binary.BigEndian.PutUint64(raw[:], l.seq)
	writeTime(raw[8:], j.at)
	writeTime(raw[16:], l.reach)
	copy(raw[24:], j.key[:])
	if _, err := l.file.WriteAt(raw[:], headSize+int64(l.seq%ledgerSlots)*slotSize); err != nil {
		l.dropFile()
		return fmt.Errorf("write ledger of seen jobs: %w", err)
	}
	return nil
}

var errNotOpen = errors.New("ledger of seen jobs is not open")

// Has reports whether a job was seen. Jobs published before since may have been seen without being recorded.
func (l *Ledger) Has(jid string) (has bool, since time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.opened {
		return false, since, errNotOpen
	}
	return l.known[keyOf(jid)], l.reach, nil
}

func readTime(b []byte) time.Time     { return time.Unix(0, int64(binary.BigEndian.Uint64(b))) }
func writeTime(b []byte, t time.Time) { binary.BigEndian.PutUint64(b, uint64(t.UnixNano())) }
