package unshare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"saltclusterd/durable"
)

// Stage is how far a node is.
type Stage string

// The stages, in order.
const (
	Shared    Stage = ""          // nothing has changed
	Copied    Stage = "copied"    // the copies are complete, and not in use
	Switching Stage = "switching" // the configuration is being changed, or the master has not been restarted with it yet
	Isolated  Stage = "isolated"  // done
)

// State is what a node remembers of its migration.
type State struct {
	Version  int       `json:"v"`
	Stage    Stage     `json:"stage"`
	StandIn  bool      `json:"stand_in,omitempty"` // this node stands for the share towards nodes that have left it
	Plan     *Plan     `json:"plan,omitempty"`
	Copied   Report    `json:"copied"`            // of the last pass
	Switched time.Time `json:"switched,omitzero"` // the configuration was changed: what started later has it
	Files    []string  `json:"files,omitempty"`   // that were written, so that they can be taken away again
}

const (
	stateVersion = 1
	maxState     = 16 << 20
)

// ErrNewerState says that the file was written by a newer version.
var ErrNewerState = errors.New("unshare: the state of the migration was written by a newer version")

// ReadState reads a state; one that is not there is Shared.
func ReadState(path string) (State, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return State{Version: stateVersion}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("state of the migration: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxState))
	if err != nil {
		return State{}, fmt.Errorf("state of the migration: %w", err)
	}
	return ParseState(raw)
}

// ParseState reads the content of a state's file.
func ParseState(raw []byte) (State, error) {
	var s State
	dec := json.NewDecoder(bytes.NewReader(raw))
	if err := dec.Decode(&s); err != nil {
		return State{}, fmt.Errorf("state of the migration: %w", err)
	}
	switch {
	case s.Version > stateVersion:
		return State{}, ErrNewerState
	case s.Version < 1, s.Stage != Shared && s.Stage != Copied && s.Stage != Switching && s.Stage != Isolated,
		s.Stage != Shared && s.Plan == nil:
		return State{}, errors.New("state of the migration: invalid")
	}
	return s, nil
}

// Save writes a state so that it is there whole, or the one before.
func (s State) Save(path string) error {
	s.Version = stateVersion
	raw, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return fmt.Errorf("state of the migration: %w", err)
	}
	if err := durable.WriteFile(path, append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("state of the migration: %w", err)
	}
	return nil
}

// Install writes a file of a configuration, readable for all, into a directory that is there.
func Install(path string, text []byte) error { return durable.WriteFile(path, text, 0o644) }
