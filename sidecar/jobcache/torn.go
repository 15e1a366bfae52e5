package jobcache

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/tinylib/msgp/msgp"
	"golang.org/x/sys/unix"

	"saltclusterd/sidecar/saltwire"
)

// condition is what a file of the job cache is like. After a power loss a file system has names whose content it never
// wrote: empty files, mostly, or files of zeros.
type condition uint8

const (
	missing condition = iota
	torn              // there, but not one value of msgpack
	whole
)

// look reads a file below dir that holds one value. It follows no link.
func look(dir int, name string) (condition, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR):
		return missing, nil
	case errors.Is(err, unix.ELOOP):
		return whole, nil // somebody else's business
	case err != nil:
		return missing, &os.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	raw, err := io.ReadAll(f)
	if err != nil {
		return missing, err
	}
	if rest, err := msgp.Skip(raw); err != nil || len(rest) > 0 {
		return torn, nil
	}
	return whole, nil
}

// settled is how old an empty file is that nobody is about to fill.
const settled = 10 * time.Second

// mend looks once after a job's directory was opened for what a stock master stumbles over: an empty .minions.p raises
// whenever the job is read, an empty .load.p hides that there is none.
func (c *Cache) mend(j *jobDir) error {
	if j.mended {
		return nil
	}
	for name, repair := range map[string]func() error{
		".minions.p": func() error { return c.put(j.fd, ".minions.p", saltwire.AppendArrayHeader(nil, 0)) },
		".load.p":    func() error { return unix.Unlinkat(j.fd, ".load.p", 0) },
	} {
		st, there, err := status(j.fd, name)
		if err != nil {
			return err
		}
		if !there || st.Size > 0 || time.Since(time.Unix(st.Mtim.Unix())) < settled {
			continue
		}
		if err := repair(); err != nil {
			return err
		}
		c.cfg.Logger.Warn("empty file of a job mended", "path", j.path+"/"+name)
	}
	j.mended = true
	return nil
}
