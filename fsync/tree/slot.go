package tree

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// The kinds of slots.
const (
	FileRoots   = "file"
	PillarRoots = "pillar"
)

// maxEnv bounds the name of an environment, maxPos the directories of one.
const (
	maxEnv = 255
	maxPos = 1023
)

// Slot names one directory of file_roots or pillar_roots.
type Slot struct {
	Kind string // FileRoots or PillarRoots
	Env  string
	Pos  int // in the environment's list
}

// String writes the slot as kind:env:position.
func (s Slot) String() string { return s.Kind + ":" + s.Env + ":" + strconv.Itoa(s.Pos) }

// ParseSlot reads what String writes. The name of an environment may hold colons.
func ParseSlot(text string) (Slot, error) {
	kind, rest, ok := strings.Cut(text, ":")
	at := strings.LastIndexByte(rest, ':')
	if !ok || at < 0 {
		return Slot{}, fmt.Errorf("slot %q: want kind:environment:position", text)
	}
	pos, err := strconv.Atoi(rest[at+1:])
	s := Slot{Kind: kind, Env: rest[:at], Pos: pos}
	if err != nil || s.String() != text || !s.Valid() {
		return Slot{}, fmt.Errorf("slot %q: want kind:environment:position", text)
	}
	return s, nil
}

// Valid says whether a slot can be part of a tree.
func (s Slot) Valid() bool {
	return (s.Kind == FileRoots || s.Kind == PillarRoots) && s.Env != "" && len(s.Env) <= maxEnv &&
		!strings.ContainsAny(s.Env, "\x00\n") && s.Pos >= 0 && s.Pos <= maxPos
}

// Compare orders slots.
func (s Slot) Compare(o Slot) int {
	return cmp.Or(cmp.Compare(s.Kind, o.Kind), cmp.Compare(s.Env, o.Env), cmp.Compare(s.Pos, o.Pos))
}

// MarshalText implements encoding.TextMarshaler.
func (s Slot) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Slot) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSlot(string(b))
	return err
}
