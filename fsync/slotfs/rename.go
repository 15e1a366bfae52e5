package slotfs

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Place is a name in a directory.
type Place struct {
	Dir  *Dir
	Name string
}

// Move gives what is at from the name to, where there must be nothing: fs.ErrExist otherwise.
func Move(from, to Place) error {
	err := renameAt(from, to, unix.RENAME_NOREPLACE)
	if !isUnsupported(err) {
		return wrapError("move", to.Name, err)
	}
	if _, err := to.Dir.Stat(to.Name); err == nil {
		return wrapError("move", to.Name, fs.ErrExist)
	}
	return wrapError("move", to.Name, renameAt(from, to, 0))
}

// ErrNoExchange says that the file system cannot exchange two names.
var ErrNoExchange = errors.New("the file system cannot exchange two files")

// Exchange swaps two names in one step.
func Exchange(a, b Place) error {
	err := renameAt(a, b, unix.RENAME_EXCHANGE)
	if isUnsupported(err) {
		err = ErrNoExchange
	}
	return wrapError("exchange", b.Name, err)
}

// Replace is rename(2).
func Replace(from, to Place) error { return wrapError("rename", to.Name, renameAt(from, to, 0)) }

func renameAt(from, to Place, flags uint) error {
	return unix.Renameat2(from.Dir.fd(), from.Name, to.Dir.fd(), to.Name, flags)
}

func isUnsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP)
}
