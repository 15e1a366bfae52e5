package apply

import (
	"context"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/fsync/scan"
	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// Stale returns a path that differs from what the plan says was there, and a path that the scan did not see: the plan
// does not say how it was, or it says that nothing was there and something is. Each is "" when there is none. It is a
// look before the switch, which looks again at each path and leaves both kinds as they are.
func Stale(area *Area, p *Plan) (edited, unseen string) {
	s := Switcher{Area: area}
	defer s.closeParent()
	for i := range p.Ops {
		op := &p.Ops[i]
		if op.Verb != Place && op.Verb != Remove {
			continue
		}
		var now slotfs.Stat
		dir, name, err := s.openParent(op.Path)
		if err == nil {
			now, err = dir.Stat(name)
		}
		switch {
		case op.Verb == Place && op.Was == nil && op.Known:
			if err == nil && now.Type != tree.Dir { // a directory gives way first
				unseen = op.Path
			}
		case !op.Known:
			unseen = op.Path
		case err != nil, !now.Unchanged(*op.Was):
			return op.Path, unseen
		}
	}
	return "", unseen
}

// rereadRate is how many bytes a scan reads again in a second, more or less.
const rereadRate = 1 << 30

// UntilTelling waits, some hundredths of a second, when so much was staged so lately that for the next scan to read it
// again would take longer. It is for before the switch: whoever edits what has taken its place then gives it another
// time than it has.
func UntilTelling(ctx context.Context, p *Plan) {
	bytes, last, now := int64(0), int64(0), time.Now()
	for i := range p.Ops {
		if op := &p.Ops[i]; op.Verb == Place && op.Entry.Type == tree.File && scan.Racy(op.StageMod, now) {
			bytes, last = bytes+op.Entry.Size(), max(last, op.StageMod)
		}
	}
	wait := time.Until(scan.Telling(last))
	if float64(bytes)/rereadRate < wait.Seconds() {
		return
	}
	backoff.Sleep(ctx, wait)
}

// Placed tells how the disk shows the files that a switch has placed.
func Placed(area *Area, p *Plan) scan.Index {
	s := Switcher{Area: area}
	defer s.closeParent()
	out := scan.Index{}
	for i := range p.Ops {
		op := &p.Ops[i]
		if op.Verb != Place {
			continue
		}
		dir, name, err := s.openParent(op.Path)
		if err != nil {
			continue
		}
		now, err := dir.Stat(name)
		if err != nil || now.Ino != op.StageIno || now.Mtime != op.StageMod || now.Type != op.Entry.Type {
			continue
		}
		if now.Type == tree.File && now.Size != op.Entry.Size() {
			continue
		}
		out[op.Path] = scan.Placed(now, op.Entry, time.Now())
	}
	return out
}

// Renumber has a plan that an earlier run has made know file systems by the numbers that they have now, which may be
// others after the machine's next start. Without that all that was there would look edited.
func Renumber(area *Area, p *Plan) error {
	s := Switcher{Area: area}
	defer s.closeParent()
	for i := range p.Ops {
		op := &p.Ops[i]
		if op.Was == nil {
			continue
		}
		dir, _, err := s.openParent(op.Path)
		if slotfs.Gone(err) { // with what was in it, but for what is in the area by now
			dir, err = area.Live, nil
		}
		var now slotfs.Stat
		if err == nil {
			now, err = dir.Self()
		}
		if err != nil {
			return err
		}
		op.Was.Dev = now.Dev
	}
	return nil
}

// Restored returns the names of what a switch has restored: it is aside no more.
func Restored(area *Area, p *Plan) (names []string) {
	for i := range p.Ops {
		if op := &p.Ops[i]; op.Verb == Restore && !isStaged(slotfs.Place{Dir: area.Aside, Name: op.Stage}, op) {
			names = append(names, op.Stage)
		}
	}
	return names
}
