package console

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// OpenReplaced opens the file that a command is about to replace, to look at it first. nil: there is none, or an empty
// one. Pipes, devices and directories are refused. Opening a pipe would wait for another process.
func OpenReplaced(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, syscall.ENXIO) { // a socket
		return nil, refuseIrregular(path)
	}
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	switch {
	case err != nil:
	case !st.Mode().IsRegular():
		err = refuseIrregular(path)
	case st.Size() > 0:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}

func refuseIrregular(path string) error {
	return Refusedf("name another file", "%s exists and is not a regular file", path)
}

// OpenInput opens a file that an operator names, which may be a pipe: <(command) of a shell is one. Waiting for
// its content ends with ctx.
func OpenInput(ctx context.Context, path string) (io.ReadCloser, error) {
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened, 1)
	go func() { // ends with the process if there is never a writer
		f, err := os.Open(path)
		done <- opened{f, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return nil, o.err
		}
		return input{Interruptible(ctx, o.f), o.f}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type input struct {
	io.Reader
	io.Closer
}

// Interruptible returns a reader of r, such as a terminal, that does not wait any longer when ctx ends. What comes
// later is lost.
func Interruptible(ctx context.Context, r io.Reader) io.Reader { return &interruptible{ctx, r} }

type interruptible struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (i *interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	type read struct {
		n   int
		err error
	}
	buf, done := make([]byte, len(p)), make(chan read, 1)
	go func() { // ends with the process if nothing ever comes
		n, err := i.r.Read(buf)
		done <- read{n, err}
	}()
	select {
	case got := <-done:
		return copy(p, buf[:got.n]), got.err
	case <-i.ctx.Done():
		return 0, i.ctx.Err()
	}
}
