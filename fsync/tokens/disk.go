package tokens

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"saltclusterd/durable"
	"saltclusterd/fsync/dirid"
)

const (
	fileMode = 0o600 // salt/tokens/localfs.py mk_token, and what mkstemp gives the files of the cache
	dirMode  = 0o700
	// tempName hides a file that is being written. It lies beside the directory, for 3006 takes every file in it for a
	// token.
	tempName = tempPrefix + "token-"
)

// disk is the master's cachedir, or, where its directory for tokens is a link, the one that this leads into.
type disk struct {
	cachedir string
	uid, gid int
	layout   layout
	name     string // of the directory for tokens; empty: dir
}

// newDisk looks where the tokens are.
func newDisk(m Master) disk {
	d := disk{cachedir: m.CacheDir, uid: m.UID, gid: m.GID, layout: newLayout(m.Major)}
	at := d.path()
	if info, err := os.Lstat(at); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if target, err := filepath.EvalSymlinks(at); err == nil {
			d.cachedir, d.name = filepath.Split(target)
		}
	}
	return d
}

func (d disk) dir() string { return cmp.Or(d.name, dir) }

// file is a token's, below root.
func (d disk) file(token string) string { return path.Join(d.dir(), d.layout.file(token)) }

func (d disk) openRoot() (*os.Root, error) {
	root, err := os.OpenRoot(d.cachedir)
	if err != nil {
		return nil, fmt.Errorf("open cachedir: %w", err)
	}
	return root, nil
}

func (d disk) path() string { return filepath.Join(d.cachedir, d.dir()) }

func (d disk) id() dirid.ID { return dirid.Of(d.path()) }

// listTokens returns the tokens that have a file. A directory that is missing has none.
func (d disk) listTokens(root *os.Root) ([]string, error) {
	f, err := root.Open(d.dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	names, err := f.Readdirnames(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	var out []string
	for _, name := range names {
		if token, ok := d.layout.token(name); ok {
			out = append(out, token)
		}
	}
	return out, nil
}

// readToken returns a token's data and its expiry. Errors do not name the token.
func (d disk) readToken(root *os.Root, token string) (data []byte, expire int64, err error) {
	name := d.file(token)
	info, err := root.Stat(name) // before opening: a pipe would block
	if err != nil {
		return nil, 0, hideName(err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errData
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, 0, hideName(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, 2*maxData))
	if err != nil {
		return nil, 0, hideName(err)
	}
	data = d.layout.unwrap(raw)
	expire, err = parseToken(token, data)
	return data, expire, err
}

// readStamp tells one content of a token's file from another.
func (d disk) readStamp(root *os.Root, token string) (stamp, error) {
	info, err := root.Stat(d.file(token))
	if err != nil {
		return stamp{}, hideName(err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}, errors.ErrUnsupported
	}
	return stamp{info.Size(), info.ModTime().UnixNano(), st.Ctim.Nano(), st.Ino}, nil
}

// writeToken makes a token's file appear whole.
func (d disk) writeToken(root *os.Root, token string, data []byte, expire int64) (err error) {
	if err := d.makeDir(root); err != nil {
		return err
	}
	temp := tempName + rand.Text()
	f, err := root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return hideName(err)
	}
	defer func() {
		if err != nil {
			_ = root.Remove(temp)
		}
	}()
	_, err = f.Write(d.layout.wrap(data, expire))
	if err == nil && d.uid >= 0 {
		err = f.Chown(d.uid, d.gid)
	}
	if err = errors.Join(err, f.Close()); err == nil && d.layout.swept() {
		err = root.Chtimes(temp, time.Time{}, spared(expire))
	}
	if err != nil {
		return hideName(err)
	}
	return hideName(root.Rename(temp, d.file(token)))
}

// spared is the time that a token's file has where masters sweep, in a range that file systems and Go know.
func spared(expire int64) time.Time { return time.Unix(min(expire, 1<<32), 0) }

// spareToken keeps the file of a token that the master has made from being removed by it before its time.
func (d disk) spareToken(root *os.Root, token string, expire int64) error {
	if !d.layout.swept() {
		return nil
	}
	return hideName(root.Chtimes(d.file(token), time.Time{}, spared(expire)))
}

// isSpared says whether a file with that stamp needs no spare.
func (d disk) isSpared(at stamp, expire int64) bool {
	return !d.layout.swept() || at.mtime == spared(expire).UnixNano()
}

func (d disk) makeDir(root *os.Root) error {
	err := root.Mkdir(d.dir(), dirMode)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	case d.uid >= 0:
		return root.Chown(d.dir(), d.uid, d.gid)
	}
	return nil
}

// removeToken removes a token's file. A missing file is not an error.
func (d disk) removeToken(root *os.Root, token string) error {
	if err := root.Remove(d.file(token)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return hideName(err)
	}
	return nil
}

// syncDir waits until the files that are in the directory would be there after a power failure, if perhaps with less in
// them.
func (d disk) syncDir() error {
	err := durable.SyncDir(filepath.Join(d.cachedir, d.dir()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return hideName(err)
}

// removeTemps removes what a write that was cut off has left.
func (d disk) removeTemps() error {
	left, err := filepath.Glob(filepath.Join(globEscape(d.cachedir), tempName+"*"))
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

func globEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// hideName takes the file's name, which is a secret, out of an error.
func hideName(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s a token's file: %w", e.Op, e.Err)
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return fmt.Errorf("%s a token's file: %w", e.Op, e.Err)
	}
	return err
}
