package tree

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Type is what stands under a name.
type Type uint8

// The types of entries. Sockets, pipes and devices are not part of a tree.
const (
	File Type = iota + 1
	Dir
	Symlink
)

// String names the type.
func (t Type) String() string {
	switch t {
	case File:
		return "file"
	case Dir:
		return "directory"
	case Symlink:
		return "symlink"
	}
	return "nothing"
}

// OwnPrefix begins the names that saltclusterd keeps for itself inside of a slot; they are never part of a tree.
const OwnPrefix = ".saltcluster-"

// Limits of a tree. MaxChunk is also what fsync/chunk never exceeds.
const (
	MaxName    = 255
	MaxTarget  = 4095
	MaxChunk   = 4 << 20
	MaxFile    = 2 << 30
	MaxEntries = 200_000  // of a directory
	MaxObject  = 32 << 20 // bytes
	MaxDepth   = 512      // of directories in a slot; Python, and so the master, goes no deeper than twice that
)

// Chunk is a part of a file.
type Chunk struct {
	Hash Hash
	Size uint32
}

// Entry is one line of a directory. Which fields count depends on the type.
type Entry struct {
	Name   string
	Type   Type
	Mode   uint16  // permission bits of files and directories, 0 of symlinks
	Chunks []Chunk // of a file, in order; an empty file has none
	Object Hash    // of a directory
	Target string  // of a symlink: its text
}

// ErrBadName says that a name cannot be part of a tree.
var ErrBadName = errors.New("not a name that a tree can hold")

// CheckName refuses what is not a single component of a path, or is kept for saltclusterd. Any bytes do otherwise.
func CheckName(name string) error {
	switch {
	case name == "" || name == "." || name == ".." || len(name) > MaxName,
		strings.ContainsAny(name, "/\x00"), strings.HasPrefix(name, OwnPrefix):
		return fmt.Errorf("%w: %q", ErrBadName, name)
	}
	return nil
}

// Size is the length of a file.
func (e *Entry) Size() int64 {
	var n int64
	for _, c := range e.Chunks {
		n += int64(c.Size)
	}
	return n
}

// Content identifies a file's bytes: the hash of its chunks' hashes. Two files cut the same way are equal when it is.
func (e *Entry) Content() Hash {
	h := sha256.New()
	for _, c := range e.Chunks {
		h.Write(c.Hash[:])
	}
	return Hash(h.Sum(nil))
}

// Identity is Content of a file, and of a symlink the same for its text.
func (e *Entry) Identity() Hash {
	if e.Type == Symlink {
		return Sum([]byte("symlink\x00" + e.Target))
	}
	return e.Content()
}

// Same says whether two entries are the same thing, whatever their names and permissions.
func (e *Entry) Same(o *Entry) bool {
	return e.Type == o.Type && e.Object == o.Object && e.Target == o.Target && slices.Equal(e.Chunks, o.Chunks)
}

// Equal says whether two entries, either may be nil, are the same with the same permissions.
func (e *Entry) Equal(o *Entry) bool {
	if e == nil || o == nil {
		return e == o
	}
	return e.Mode == o.Mode && e.Same(o)
}

func (e *Entry) validate() error {
	if err := CheckName(e.Name); err != nil {
		return err
	}
	switch {
	case e.Mode > 0o777:
		return fmt.Errorf("%q: mode %o", e.Name, e.Mode)
	case e.Type == Symlink && (e.Mode != 0 || e.Target == "" || len(e.Target) > MaxTarget ||
		strings.Contains(e.Target, "\x00")):
		return fmt.Errorf("%q: bad symlink", e.Name)
	case e.Type == File && e.Size() > MaxFile:
		return fmt.Errorf("%q: larger than 2 GiB", e.Name)
	case e.Type != File && len(e.Chunks) > 0, e.Type != Dir && !e.Object.IsZero(), e.Type != Symlink && e.Target != "":
		return fmt.Errorf("%q: fields of another type", e.Name)
	}
	return nil
}
