package state

import (
	"errors"
	"fmt"
)

// LevelSet ("level.set") notes that every member understands what belongs to a level, so that from this entry on
// commands may mean what they mean there. It never goes down: a level is proposed when all members know it, see Level.
type LevelSet struct {
	Level uint16 `json:"level"`
	Audit
}

// Type implements Command.
func (LevelSet) Type() string { return "level.set" }

// Validate implements Command. A level that this version does not know cannot be stood for.
func (c LevelSet) Validate() error { return errors.Join(validLevel(c.Level), c.Audit.validate()) }

func (c LevelSet) applyTo(d *data) Result {
	if c.Level > d.level {
		d.level = c.Level
		d.nextRevision()
	}
	return Result{Rev: d.rev}
}

// decodeLevel does not skip a level that only a newer version knows: what follows means something else there.
func decodeLevel(body []byte) (Command, error) {
	c, err := decodeAs[LevelSet](body)
	if set, ok := c.(LevelSet); ok && set.Level > Level {
		return nil, fmt.Errorf("level %d: %w", set.Level, ErrUnsupported)
	}
	return c, err
}

func validLevel(n uint16) error {
	if n == 0 || n > Level {
		return errors.New("a level that this version does not know")
	}
	return nil
}

// Level is what all members understand, as the cluster has agreed; zero: nothing was said about it yet.
func (v View) Level() uint16 { return v.get().level }

// wireLevel is the snapshot record, there only when something was agreed.
type wireLevel struct {
	Level uint16 `json:"level"`
}

func (r *snapshotReader) readLevel(w wireLevel) error {
	switch {
	case r.d.level != 0:
		return errors.New("level twice")
	case w.Level > Level:
		return fmt.Errorf("level %d: %w", w.Level, ErrUnsupported)
	}
	r.d.level = w.Level
	return validLevel(w.Level)
}
