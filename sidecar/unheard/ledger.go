package unheard

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const (
	// ledgerSlots is how many jobs a ledger holds. A command line waits 15 s by default: that is some 270 jobs a second.
	ledgerSlots = 4096
	slotSize    = 8 + 8 + 8 + keySize // sequence number, when it was heard of, reach; big endian, Unix time in ns
	keySize     = 16
	headSize    = 8 + 32 + 8 // magic, of which boot, reach
	ledgerSize  = headSize + ledgerSlots*slotSize
)

// ledgerMagic changes with the format. A file of another one is replaced.
const ledgerMagic = "SCDHEAR1"

// key stands for a job's id.
type key [keySize]byte

func keyOf(jid string) (k key) {
	sum := sha256.Sum256([]byte(jid))
	copy(k[:], sum[:])
	return k
}

type heard struct {
	key key
	at  time.Time
}

// Ledger remembers in a file which jobs were heard of last. It is written with one call a job and not synced: it is for the next
// process after a kill, and void after a power loss. It may be used by several goroutines.
type Ledger struct {
	path string
	boot [32]byte
	now  func() time.Time

	mu     sync.Mutex
	file   *os.File // nil: not open, or it could not be written
	seq    uint64   // of the next slot
	ring   []heard  // the slots, the oldest first
	known  map[key]bool
	reach  time.Time // what was heard of since then is in it
	opened bool
}

// NewLedger returns a ledger in the file path, which is not opened. boot names the run of the machine. What is noted before Open is in
// it, too.
func NewLedger(path, boot string, now func() time.Time) *Ledger {
	return &Ledger{path: path, boot: sha256.Sum256([]byte(boot)), now: now, known: map[key]bool{}}
}

// Open reads the file, or makes a new one. With an error the ledger knows no past and leaves none.
func (l *Ledger) Open() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	early := l.ring
	l.opened, l.ring, l.seq, l.known = true, nil, 0, map[key]bool{}
	l.reach = l.now()
	var err error
	if l.file, err = os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		l.file = nil
		l.addAll(early)
		return fmt.Errorf("open the ledger of jobs: %w", err)
	}
	if !l.read() {
		err = l.begin()
	}
	if err != nil {
		l.drop()
	}
	l.addAll(early)
	return err
}

// read takes over what a process before this one has noted; false: nothing can be taken over.
func (l *Ledger) read() bool {
	b, err := io.ReadAll(io.LimitReader(l.file, ledgerSize+1))
	if err != nil || len(b) != ledgerSize || !bytes.Equal(b[:8], []byte(ledgerMagic)) || !bytes.Equal(b[8:40], l.boot[:]) {
		return false
	}
	l.reach = readTime(b[40:])
	type slot struct {
		heard
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
		if !ok { // not written, though a later one was
			return false
		}
		l.ring = append(l.ring, s.heard)
		l.known[s.key] = true
		if s.reach.After(l.reach) {
			l.reach = s.reach
		}
	}
	l.seq = last
	return true
}

// begin makes the file anew.
func (l *Ledger) begin() error {
	l.ring, l.seq, l.known, l.reach = nil, 0, map[key]bool{}, l.now()
	b := make([]byte, ledgerSize) // with room for all that will come: a full disk is no matter later
	copy(b, ledgerMagic)
	copy(b[8:], l.boot[:])
	writeTime(b[40:], l.reach)
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("make the ledger of jobs: %w", err)
	}
	if _, err := l.file.WriteAt(b, 0); err != nil {
		return fmt.Errorf("make the ledger of jobs: %w", err)
	}
	return nil
}

// drop gives the file up, so that no later process believes that it is whole. The caller holds mu.
func (l *Ledger) drop() {
	if l.file != nil {
		_ = l.file.Truncate(0)
		_ = l.file.Close()
		_ = os.Remove(l.path)
		l.file = nil
	}
}

// Close closes the file.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return f.Close()
}

// Note notes that a job was heard of. An error, which comes once, means that the next process will know nothing.
func (l *Ledger) Note(jid string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := keyOf(jid)
	if l.known[k] {
		return nil
	}
	return l.add(heard{k, l.now()})
}

func (l *Ledger) addAll(all []heard) {
	for _, h := range all {
		if !l.known[h.key] {
			_ = l.add(h) // that it failed shows in the file, which is gone then
		}
	}
}

// add notes one. The caller holds mu.
func (l *Ledger) add(h heard) error {
	if len(l.ring) == ledgerSlots {
		if old := l.ring[0].at; old.After(l.reach) {
			l.reach = old
		}
		delete(l.known, l.ring[0].key)
		l.ring = l.ring[1:]
	}
	l.ring = append(l.ring, h)
	l.known[h.key] = true
	l.seq++
	if l.file == nil {
		return nil
	}
	var raw [slotSize]byte
	binary.BigEndian.PutUint64(raw[:], l.seq)
	writeTime(raw[8:], h.at)
	writeTime(raw[16:], l.reach)
	copy(raw[24:], h.key[:])
	if _, err := l.file.WriteAt(raw[:], headSize+int64(l.seq%ledgerSlots)*slotSize); err != nil {
		l.drop()
		return fmt.Errorf("write to the ledger of jobs: %w", err)
	}
	return nil
}

// errNotOpen says that a ledger was asked before it knew the past.
var errNotOpen = errors.New("ledger of jobs is not open")

// Has reports whether a job was heard of. since is from when on it would know: of what was published before, it says nothing.
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
