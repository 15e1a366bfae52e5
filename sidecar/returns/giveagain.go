package returns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"saltclusterd/sidecar/spool"
)

// retryWaiting makes all due that can be given, those that wait for an operator too, and says how many, and how many
// cannot.
func (u *unanswered) retryWaiting() (due, damaged int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	u.inVain, u.notBefore = 0, now
	for _, w := range u.items {
		if w.damaged {
			damaged++
			continue
		}
		w.Next = now
		due++
	}
	u.notifyRun()
	return due, damaged
}

// makeDue makes a return due that does not wait for an operator, unless the master had it moments ago. Wants mu.
func (u *unanswered) makeDue(w *waiting) {
	if at := w.last.Add(u.first); at.Before(w.Next) {
		w.Next = at
	}
}

// masterStarted makes the oldest due, and the others when the master has answered it. A pause for all stays in force:
// the only news is that the master is there again, which is also the case after one of these returns has stopped it for
// a while.
func (u *unanswered) masterStarted() {
	u.mu.Lock()
	defer u.mu.Unlock()
	var oldest *waiting
	for _, w := range u.items {
		if !w.Next.IsZero() && (oldest == nil || cmp.Or(w.Since.Compare(oldest.Since),
			strings.Compare(w.ID, oldest.ID)) < 0) {
			oldest = w
		}
	}
	if oldest == nil {
		return
	}
	u.trial = true
	u.makeDue(oldest)
	u.notifyRun()
}

// noteAnswered notes that the master has answered one.
func (u *unanswered) noteAnswered() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.inVain, u.notBefore = 0, time.Time{}
	if !u.trial {
		return
	}
	u.trial = false
	for _, w := range u.items {
		u.makeDue(w)
	}
}

// nextDue is the return that is due first, and when it is.
func (u *unanswered) nextDue() (id string, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for one, w := range u.items {
		if !u.busy[one] && !w.Next.IsZero() && (id == "" || cmp.Or(w.Next.Compare(at), strings.Compare(one, id)) < 0) {
			id, at = one, w.Next
		}
	}
	if at.Before(u.notBefore) {
		at = u.notBefore
	}
	return id, at
}

// runLoop gives the master what is due, one after the other.
func (u *unanswered) runLoop(ctx context.Context) {
	for ctx.Err() == nil {
		id, at := u.nextDue()
		pause := masterAway
		switch d := time.Until(at); {
		case id == "":
			pause = giveAgainMost // or when it is roused
		case d > 0:
			pause = d
		case u.s.c.Python.Up():
			u.giveReturn(ctx, id)
			continue
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-u.wake:
		case <-t.C:
		}
		t.Stop()
	}
}

// outcome is what came of a try that has not worked.
type outcome uint8

const (
	unasked    outcome = iota // neither has the master got it, nor was there anything wrong with it
	refused                   // before anything was done with it
	inVain                    // it may have fired its events
	impossible                // there is nothing to give
)

// giveReturn gives the master one of them once more.
func (u *unanswered) giveReturn(ctx context.Context, id string) {
	select {
	case u.turn <- struct{}{}:
		defer func() { <-u.turn }()
	case <-ctx.Done():
		return
	}
	rec, err := u.readReturn(id)
	switch {
	case errors.Is(err, fs.ErrNotExist): // dropped, by hand perhaps
		_, _ = u.removeReturn(id)
		return
	case isUnusable(err):
		u.noteFailed(id, err, impossible)
		return
	case err != nil: // the disk may give it later
		u.noteFailed(id, err, unasked)
		return
	}
	sync := u.s.stored.newSync()
	if !u.s.hasStored(&rec) { // else an earlier try was carried out, and only its answer is missing
		u.s.Mend(rec.JID, rec.Minion)
		if err = u.s.askPython(ctx, &rec); err == nil {
			u.noteAnswered()
		}
	}
	if err == nil { // its file is the only copy that survives a power loss
		if err := sync(ctx); err != nil {
			u.noteFailed(id, fmt.Errorf("sync what the salt-master has stored: %w", err), unasked)
			return
		}
	}
	switch {
	case err == nil || errors.Is(err, ErrGone):
		u.noteDone(id, &rec, err)
	case ctx.Err() != nil:
	case errors.Is(err, ErrNotAsked):
		u.noteFailed(id, err, unasked)
	case errors.Is(err, ErrRefused):
		u.noteFailed(id, err, refused)
	case u.noteFailed(id, err, inVain):
		u.s.c.Logger.Error("return that was put aside waits for an operator: each try may fire its events again", "minion",
			rec.Minion,
			"jid", rec.JID, "err", err)
		u.holdReturn(id)
	}
}

// noteDone forgets a return that the master has answered, or, with an error, does not take any more.
func (u *unanswered) noteDone(id string, rec *spool.Record, gone error) {
	// an operator drops it
	if _, err := u.removeReturn(id); err != nil && !errors.Is(err, ErrNotAside) && !errors.Is(err, errBusy) {
		u.s.c.Logger.Error("return that was put aside is processed, but its file was not removed", "path", u.path(id), "err", err)
		u.noteFailed(id, err, impossible) // it must not be given again and again
		return
	}
	if gone != nil {
		u.s.metrics.count("gone")
	} else {
		u.s.metrics.count("answered_late")
	}
	u.s.c.Logger.Info("return that was put aside is processed", "minion", rec.Minion, "jid", rec.JID, "err", gone)
}

// noteFailed notes a try that has not worked; held: it was the last one.
func (u *unanswered) noteFailed(id string, err error, how outcome) (held bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if how == inVain {
		u.inVain++
		u.notBefore, u.trial = now.Add(u.pauseAfter(u.inVain)), false
	}
	w := u.items[id]
	if w == nil {
		return false
	}
	w.Err = err.Error()
	if how == unasked { // which says nothing about it
		w.Next = now.Add(min(u.first, masterAway))
		return false
	}
	w.Tries++
	w.last, w.Next, w.damaged = now, now.Add(u.pauseAfter(w.Tries)), how == impossible
	if how == inVain {
		w.asked++
	}
	if w.damaged || w.asked >= maxAsked {
		w.Next = time.Time{}
	}
	return how == inVain && w.asked == maxAsked
}

// pauseAfter is how long a return waits after so many tries.
func (u *unanswered) pauseAfter(tries int) time.Duration {
	d := u.first
	for range tries - 1 {
		if d *= giveAgainTimes; d >= u.top {
			return u.top
		}
	}
	return d
}
