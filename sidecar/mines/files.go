package mines

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"saltclusterd/sidecar/saltvalue"
)

// maxFile bounds one mine that is read here.
const maxFile = 4 << 20

// files is a master's cachedir during one question.
type files struct {
	set  *Settings
	root *os.Root

	asked, any bool // whether a minion may have resources
}

func openFiles(set *Settings) (*files, error) {
	root, err := os.OpenRoot(set.cacheDir)
	if err != nil {
		return nil, fmt.Errorf("mines: %w", err)
	}
	return &files{set: set, root: root}, nil
}

func (f *files) close() { _ = f.root.Close() } // it was only read

// readMine reads a minion's mine; nil: it has none.
func (f *files) readMine(id string) ([]byte, error) {
	raw, err := f.readFile(f.set.mineFile(id))
	if !errors.Is(err, fs.ErrNotExist) {
		return raw, err
	}
	if info, err := f.root.Stat(f.set.bankFile(id)); err == nil && info.Mode().IsRegular() {
		return nil, saltvalue.Needs("a bank of mines that is one file")
	}
	return nil, nil
}

func (f *files) readFile(name string) ([]byte, error) {
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would block
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fs.ErrNotExist // as os.path.isfile has it
	case info.Size() > maxFile:
		return nil, saltvalue.Needs("a mine of %d bytes", info.Size())
	}
	raw := make([]byte, info.Size())
	if _, err := io.ReadFull(file, raw); err != nil { // the file of a mine is replaced by another, never written in place
		return nil, fmt.Errorf("mines: %s: %w", name, err)
	}
	return raw, nil
}

// registry is where a 3008 master keeps which resources minions manage (salt/utils/resource_registry.py).
const registry = "resources/resource_index.by_id.mmap"

// hasResources says whether any minion may have some: the registry is there and something was ever written into it.
func (f *files) hasResources() bool {
	if !f.asked {
		f.asked, f.any = true, f.hasContent(registry)
	}
	return f.any
}

func (f *files) hasContent(name string) bool {
	info, err := f.root.Stat(name)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || st.Blocks > 0
}
