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
	err := rename(from, to, unix.RENAME_NOREPLACE)
	if !unsupported(err) {
		return wrap("move", to.Name, err)
	}
	if _, err := to.Dir.Stat(to.Name); err == nil {
		return wrap("move", to.Name, fs.ErrExist)
	}
	return wrap("move", to.Name, rename(from, to, 0))
}

// ErrNoExchange says that the file system cannot exchange two names.
var ErrNoExchange = errors.New("the file system cannot exchange two files")

// Exchange swaps two names in one step.
func Exchange(a, b Place) error {
	err := rename(a, b, unix.RENAME_EXCHANGE)
	if unsupported(err) {
		err = ErrNoExchange
	}
	return wrap("exchange", b.Name, err)
}

// Replace is rename(2).
func Replace(from, to Place) error { return wrap("rename", to.Name, rename(from, to, 0)) }

func rename(from, to Place, flags uint) error {
	return unix.Renameat2(from.Dir.fd(), from.Name, to.Dir.fd(), to.Name, flags)
}

func unsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP)
}
