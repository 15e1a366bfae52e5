package jobcache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/durable/torn"
	"saltclusterd/sidecar/saltvalue"
	"saltclusterd/sidecar/saltwire"
)

const (
	// maxPublished bounds an answer of Published; peers carry 64 MiB.
	maxPublished = 48 << 20
	// maxPublishing is how many answers are made at a time.
	maxPublishing = 4
	// maxAuth bounds a file of publish_auth, which holds a minion's id.
	maxAuth = 4 << 10
	// tornTries and tornPause bound the wait for a return that is being written. A stock master reads it until it is
	// whole, for ever; the minion that asks will ask again.
	tornTries = 10
	tornPause = 20 * time.Millisecond
)

// ErrUnknown means that nothing on this node says that a minion has published a job.
var ErrUnknown = errors.New("jobcache: no minion is known to have published the job")

var rawEmptyMap = []byte{0x80}

// Published is salt/master.py:AESFuncs.pub_ret: what the job jid has returned so far, as the msgpack of
// salt/client/__init__.py:get_cache_returns, when the minion id has published it (publish.publish); for any other
// minion an empty map. Which minion published a job is known to the master that did it for the minion (publish_auth),
// and to every node that has the job's load. Errors: ErrUnknown, *NeedsPython, the disk's.
func (c *Cache) Published(ctx context.Context, jid, id string) ([]byte, error) {
	if !validID(jid) {
		return nil, ErrUnknown
	}
	if is, sure := isJID(jid); !is || !sure { // a publication that has reached no minion is job 0
		return nil, needs("a job id that no master creates")
	}
	select {
	case c.publishing <- struct{}{}:
		defer func() { <-c.publishing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	publisher, err := c.readPublisher(jid)
	if err != nil {
		return nil, err
	}
	if publisher != id {
		return rawEmptyMap, nil
	}
	return c.readReturned(ctx, jid)
}

// readPublisher names the minion that published a job.
func (c *Cache) readPublisher(jid string) (string, error) {
	b, err := readBounded(filepath.Join(c.cfg.CacheDir, "publish_auth", jid), maxAuth)
	switch {
	case err == nil && len(b) > 0: // an empty one has been through a power loss
		return string(b), nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	b, err = readBounded(filepath.Join(c.cfg.CacheDir, c.jobPath(jid), ".load.p"), maxPublished)
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrUnknown
	}
	if err != nil {
		return "", err
	}
	if id := publisherOf(b); id != "" {
		return id, nil
	}
	return "", ErrUnknown
}

// publisherOf reads from a job's load which minion published it: masterapi's minion_pub hands its id to the client,
// which puts what it does not know into kwargs.
func publisherOf(load []byte) (id string) {
	err := saltwire.WalkMap(load, func(key, kwargs []byte) error {
		if string(key) != "kwargs" || !saltvalue.IsMap(kwargs) {
			return nil
		}
		return saltwire.WalkMap(kwargs, func(key, value []byte) error {
			if string(key) == "id" {
				id, _ = saltvalue.Text(value)
			}
			return nil
		})
	})
	if err != nil {
		return ""
	}
	return id
}

// readReturned assembles the returns of a job.
func (c *Cache) readReturned(ctx context.Context, jid string) ([]byte, error) {
	dir := filepath.Join(c.cfg.CacheDir, c.jobPath(jid))
	names, err := namesIn(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return rawEmptyMap, nil
	}
	if err != nil {
		return nil, err
	}
	var body []byte
	n, tries := 0, tornTries
	for _, name := range names {
		if strings.HasPrefix(name, ".") {
			continue
		}
		one, err := c.returnOf(ctx, filepath.Join(dir, name), &tries, maxPublished-len(body))
		switch {
		case err != nil:
			return nil, err
		case one != nil:
			body = append(saltwire.AppendRaw(body, name), one...)
			n++
		}
	}
	return append(saltwire.AppendMapHeader(make([]byte, 0, 5+len(body)), n), body...), nil
}

// returnOf is what a minion's directory says, nil when it says nothing yet.
func (c *Cache) returnOf(ctx context.Context, dir string, tries *int, room int) ([]byte, error) {
	raw, err := readValue(ctx, filepath.Join(dir, "return.p"), tries, room)
	if raw == nil || err != nil {
		return nil, err
	}
	if f, ok := saltvalue.ParseFields(raw); ok && f.Has("return") {
		raw, _ = f.Get("return")
	}
	out, err := readValue(ctx, filepath.Join(dir, "out.p"), tries, room)
	if err != nil {
		return nil, err
	}
	n := 1
	if out != nil {
		n = 2
	}
	dst := saltwire.AppendRaw(saltwire.AppendMapHeader(nil, n), "ret")
	if dst, _, err = saltvalue.AppendWire(dst, raw); err == nil && out != nil {
		dst, _, err = saltvalue.AppendWire(saltwire.AppendRaw(dst, "out"), out)
	}
	if err == nil && len(dst) > room {
		err = errTooMuch
	}
	return dst, err
}

var errTooMuch = needs("more returns than fit into an answer")

// readValue reads a file that holds one value; nil: there is none, or not yet.
func readValue(ctx context.Context, path string, tries *int, room int) ([]byte, error) {
	for {
		raw, err := readBounded(path, room)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil || torn.Value(raw) == torn.Whole {
			return raw, err
		}
		if *tries == 0 {
			return nil, nil
		}
		*tries--
		select {
		case <-time.After(tornPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// readBounded reads a regular file of at most limit bytes; anything but a regular file counts as missing.
func readBounded(path string, limit int) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR):
		return nil, fs.ErrNotExist
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fs.ErrNotExist
	case info.Size() > int64(limit):
		return nil, errTooMuch
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("job cache: %w", err)
	}
	return b, nil
}

func namesIn(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}
