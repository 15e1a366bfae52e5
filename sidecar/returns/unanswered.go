package returns

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"saltclusterd/durable"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/spool"
	"saltclusterd/signal"
)

const (
	unansweredName = "unanswered"
	unansweredExt  = ".return"
	// heldExt marks one that only an operator gives to the master again: an empty file beside it, so that no restart
	// forgets it.
	heldExt = ".held"
	// maxUnanswered bounds the number of returns put aside, beside their bytes.
	maxUnanswered = 10_000
	// maxUnansweredFile bounds what is read as one of them.
	maxUnansweredFile = MaxBatch

	// giveAgain is the first pause before the master gets a return again that it has not answered, giveAgainTimes as long
	// the next time, up to giveAgainMost: it may cost a worker each time.
	giveAgain      = time.Minute
	giveAgainTimes = 4
	giveAgainMost  = 2 * time.Hour
	// maxAsked is how often the master is given a return that it does not answer before an operator has to ask for it: a
	// stock master fires a return's events before it stores it, so its reactor may act on each of these tries. Refusals do
	// not count, because a master refuses before it does anything.
	maxAsked = 3
	// masterAway is how often to check whether the master is back when MasterStarted is not called.
	masterAway = 5 * time.Second
)

// What happens to returns that were put aside.
var (
	errUnansweredFull = errors.New("returns: no more are put aside: those put aside already wait for an operator")
	errBusy           = errors.New("returns: its file is being written or removed")
	errDamaged        = errors.New("returns: the file is damaged")
	errNewer          = errors.New("returns: a newer saltclusterd has put it aside: start that version again")
	// ErrNotAside: no return with that id was put aside.
	ErrNotAside = errors.New("returns: there is none with that id")
)

// DescribeAside says where the returns are that the local master of a node does not answer.
func DescribeAside(n int) string {
	if n == 1 {
		return "1 return that its salt-master does not answer stays in state_dir/returns/unanswered"
	}
	return fmt.Sprintf("%d returns that its salt-master does not answer stay in state_dir/returns/unanswered", n)
}

// Unanswered is a return which only the local master can take, and which it has not answered though it answers others.
type Unanswered struct {
	ID               string // its name for Drop
	Minion, JID, Fun string
	Received         time.Time // when it came from the minion
	Since            time.Time // when it was put aside
	Bytes            int64
	// since this process began, or it was put aside; at least maxAsked of one that waits for an operator
	Tries int
	Next  time.Time // when the master gets it again, if it is up; zero: when an operator says so
	Err   string    // what came of the last try
}

// unanswered is where returns go that the master does not answer: a file each, so that none holds up another and any
// can be dropped. The master gets them again one at a time, since each may cost it a worker, after pauses that grow:
// each one's own, and that of all after one was not answered. Else as many of them as the master has workers, all due,
// would stop it.
type unanswered struct {
	s          *Service
	dir        string
	maxBytes   int64
	first, top time.Duration // pauses
	wake       chan struct{}
	turn       chan struct{} // holds one: who has one of them in hand, the master or another node
	wg         sync.WaitGroup
	writeFile  func(path string, body []byte) error

	// guards what follows; the disk is not touched under it, because it may hang, and health must not hang with it
	mu    sync.Mutex
	items map[string]*waiting
	busy  map[string]bool // whose files are being written or removed: of one that is being written nothing is in items yet
	bytes int64           // of those, too
	full  bool            // the last one that should have been put aside was not

	inVain    int       // tries in a row that the master has not answered
	notBefore time.Time // it gets none before: the pause after those
	trial     bool      // it may be another one: when it answers the next, all are due
}

type waiting struct {
	Unanswered
	last  time.Time // when the master had it last
	asked int       // tries that may have fired its events
	// damaged: there is nothing to give. Its file is not a return, or of a newer version, or stays although it is done
	// with.
	damaged bool
}

func newUnanswered(s *Service) *unanswered {
	return &unanswered{
		s: s, dir: s.path(unansweredName), maxBytes: s.c.MaxBytes / 4, first: giveAgain, top: giveAgainMost,
		wake: make(chan struct{}, 1), turn: make(chan struct{}, 1), items: map[string]*waiting{}, busy: map[string]bool{},
		writeFile: func(path string, body []byte) error { return durable.WriteFile(path, body, 0o600) },
	}
}

// openDir reads what was put aside before and begins to give it to the master.
func (u *unanswered) openDir(ctx context.Context) error {
	if err := os.MkdirAll(u.dir, 0o700); err != nil {
		return fmt.Errorf("returns put aside: %w", err)
	}
	entries, err := os.ReadDir(u.dir)
	if err != nil {
		return fmt.Errorf("returns put aside: %w", err)
	}
	now := time.Now()
	var held []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), heldExt); ok {
			held = append(held, id)
			continue
		}
		id, ok := strings.CutSuffix(e.Name(), unansweredExt)
		if !ok || !e.Type().IsRegular() {
			if strings.HasPrefix(e.Name(), durable.Prefix) { // of a process that was killed
				_ = os.Remove(filepath.Join(u.dir, e.Name()))
			}
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // dropped by hand a moment ago
		}
		w := &waiting{Unanswered: Unanswered{ID: id, Since: info.ModTime(), Bytes: info.Size()}, last: now}
		if rec, err := u.readReturn(id); err != nil {
			w.Err = err.Error()
			if w.damaged = isUnusable(err); !w.damaged { // the disk may give it later
				w.Next = now.Add(u.first)
			}
			u.s.c.Logger.Error("return that was put aside is not readable", "path", u.path(id), "err", err)
		} else {
			w.describeRecord(rec)
			w.Next = now.Add(u.first)
		}
		u.items[id] = w
		u.bytes += w.Bytes
	}
	for _, id := range held {
		w := u.items[id]
		if w == nil { // the process was killed between the two
			_ = os.Remove(u.heldPath(id))
			continue
		}
		w.asked, w.Tries, w.Next = maxAsked, maxAsked, time.Time{}
	}
	u.s.metrics.putAside(len(u.items))
	u.wg.Go(func() { u.runLoop(ctx) })
	return nil
}

func (u *unanswered) heldPath(id string) string { return filepath.Join(u.dir, id+heldExt) }

// holdReturn notes on disk that a return waits for an operator. Without the note it gets some more tries after a
// restart.
func (u *unanswered) holdReturn(id string) {
	if err := durable.WriteFile(u.heldPath(id), nil, 0o600); err != nil {
		u.s.c.Logger.Warn("return that waits for an operator not recorded", "path", u.heldPath(id), "err", err)
	}
}

func (u *unanswered) waitEnd() { u.wg.Wait() }

func (u *unanswered) path(id string) string { return filepath.Join(u.dir, id+unansweredExt) }

func (w *waiting) describeRecord(rec spool.Record) {
	w.Minion, w.JID, w.Received = rec.Minion, rec.JID, rec.Received
	if peek, err := saltwire.PeekLoad(rec.Load); err == nil {
		w.Fun = peek.Fun
	}
}

// readReturn reads a return that was put aside: a batch of one.
func (u *unanswered) readReturn(id string) (spool.Record, error) {
	info, err := os.Stat(u.path(id))
	if err == nil && info.Size() > maxUnansweredFile {
		err = errDamaged
	}
	if err != nil {
		return spool.Record{}, err
	}
	body, err := os.ReadFile(u.path(id))
	if err != nil {
		return spool.Record{}, err
	}
	batch, err := parseBatch(body)
	switch {
	case errors.Is(err, spool.ErrNewer):
		return spool.Record{}, errNewer
	case err != nil || len(batch) != 1:
		return spool.Record{}, errors.Join(errDamaged, err)
	}
	return batch[0], nil
}

// isUnusable says whether the file of a return gives nothing here, however often it is read.
func isUnusable(err error) bool { return errors.Is(err, errDamaged) || errors.Is(err, errNewer) }

// putReturn takes a return that the master had asked times without an answer; it is on disk when put returns nil. The
// same one twice, as after a kill, is one.
func (u *unanswered) putReturn(rec spool.Record, why error, asked int) error {
	body, _, err := appendBatch(nil, []spool.Record{rec})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %s", rec.Minion, rec.JID, rec.Received.UnixNano(), rec.Load))
	id := hex.EncodeToString(sum[:8])
	size := int64(len(body))
	if there, err := u.reserveRoom(id, size); there || err != nil {
		return err
	}
	err = u.writeFile(u.path(id), body)
	now := time.Now()
	w := &waiting{last: now, asked: asked, Unanswered: Unanswered{
		ID: id, Since: now, Bytes: size, Tries: max(asked, 1), Next: now.Add(u.first), Err: why.Error(),
	}}
	w.describeRecord(rec)
	if w.asked >= maxAsked && err == nil {
		w.Next = time.Time{}
		u.holdReturn(id)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.busy, id)
	if err != nil {
		u.bytes -= size
		return err
	}
	u.items[id] = w
	u.s.metrics.putAside(len(u.items))
	u.notifyRun()
	return nil
}

// reserveRoom takes room for a return, unless it is there already. A reserved return is busy.
func (u *unanswered) reserveRoom(id string, size int64) (there bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.busy[id] {
		return false, errBusy
	}
	if u.items[id] != nil {
		return true, nil
	}
	if u.full = u.bytes+size > u.maxBytes || len(u.items)+len(u.busy) >= maxUnanswered; u.full {
		return false, errUnansweredFull
	}
	u.bytes += size
	u.busy[id] = true
	return false, nil
}

func (u *unanswered) notifyRun() { signal.Send(u.wake) }

// listReturns is a copy, what waits longest first.
func (u *unanswered) listReturns() []Unanswered {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := make([]Unanswered, 0, len(u.items))
	for _, w := range u.items {
		out = append(out, w.Unanswered)
	}
	slices.SortFunc(out, func(a, b Unanswered) int {
		if c := a.Since.Compare(b.Since); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out
}

// removeReturn forgets a return for good.
func (u *unanswered) removeReturn(id string) (Unanswered, error) {
	u.mu.Lock()
	w, busy := u.items[id], u.busy[id]
	if w != nil && !busy {
		u.busy[id] = true
	}
	u.mu.Unlock()
	switch {
	case busy:
		return Unanswered{}, errBusy
	case w == nil:
		return Unanswered{}, ErrNotAside
	}
	err := u.deleteFile(id)
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.busy, id)
	if err != nil {
		u.notifyRun() // it may have been due meanwhile
		return Unanswered{}, fmt.Errorf("drop a return: %w", err)
	}
	delete(u.items, id)
	u.bytes -= w.Bytes
	u.full = false
	u.s.metrics.putAside(len(u.items))
	return w.Unanswered, nil
}

func (u *unanswered) deleteFile(id string) error {
	err := os.Remove(u.path(id))
	_ = os.Remove(u.heldPath(id)) // seldom there; what a kill leaves of it goes when the next process begins
	if err == nil {
		err = durable.SyncDir(u.dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Unanswered lists the returns that were put aside, what waits longest first. full: no more are, so that they hold up
// those after them.
func (s *Service) Unanswered() (list []Unanswered, full bool) {
	list = s.unanswered.listReturns()
	s.unanswered.mu.Lock()
	defer s.unanswered.mu.Unlock()
	return list, s.unanswered.full
}

// Drop gives up a return that was put aside: it is lost. Error: ErrNotAside, the disk's.
func (s *Service) Drop(id string) (Unanswered, error) {
	one, err := s.unanswered.removeReturn(id)
	if err == nil {
		s.metrics.count("dropped")
		s.c.Logger.Warn("return that was put aside is dropped", "minion", one.Minion, "jid", one.JID)
	}
	return one, err
}

// Again gives the master all returns that were put aside once more, as soon as it is up, and says how many. There is
// nothing to give of damaged ones.
func (s *Service) Again() (due, damaged int) { return s.unanswered.retryWaiting() }

// MasterStarted says that the local master is there again: it may have been started anew, and answer what it did not.
// The oldest that was put aside is given to it to find out. One that it had moments ago waits a little, because it may
// be what has ended the master.
func (s *Service) MasterStarted() { s.unanswered.masterStarted() }
