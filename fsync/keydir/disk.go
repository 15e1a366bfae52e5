package keydir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/dirid"
)

// racy is how long after a change of a file another one might leave the same time stamp.
const racy = 100 * time.Millisecond

// disk knows what lies in the directories. It is used by one goroutine.
type disk struct {
	root    string
	files   [places]map[string]file
	dirs    [places]dirid.ID // at the last scan
	invalid *invalidEntries
}

// file is what is known of one directory entry.
type file struct {
	sig     signature
	print   keyPrint // empty: no key in it
	checked time.Time
}

// signature changes whenever a file does, except within racy.
type signature struct {
	ino   uint64
	size  int64
	mode  fs.FileMode
	mtime time.Time
	ctime time.Time
}

func newDisk(root string, invalid *invalidEntries) *disk {
	d := &disk{root: root, invalid: invalid}
	for p := range places {
		d.files[p] = map[string]file{}
	}
	return d
}

func (d *disk) dirPath(p place) string             { return filepath.Join(d.root, p.String()) }
func (d *disk) filePath(p place, id string) string { return filepath.Join(d.root, p.String(), id) }

// scanAll looks at everything. An error means that a directory could not be read; then nothing is known.
func (d *disk) scanAll() error {
	for _, p := range lookOrder {
		if err := d.scanDir(p); err != nil {
			return fmt.Errorf("look at %s: %w", p, err)
		}
	}
	return nil
}

func (d *disk) scanDir(p place) error {
	f, err := os.Open(d.dirPath(p))
	if err != nil {
		return err
	}
	d.dirs[p] = dirid.Of(d.dirPath(p))
	names, err := f.Readdirnames(-1)
	err = errors.Join(err, f.Close())
	if err != nil {
		return err
	}
	there := make(map[string]struct{}, len(names))
	for _, name := range names {
		if d.isKeyName(p, name) {
			there[name] = struct{}{}
			d.refreshFile(p, name)
		}
	}
	for name := range d.files[p] {
		if _, ok := there[name]; !ok {
			delete(d.files[p], name)
		}
	}
	return nil
}

// dirsReplaced says whether a directory is not the one that was scanned. Then a file that is missing has not been
// deleted.
func (d *disk) dirsReplaced() bool {
	for p := range places {
		if id := dirid.Of(d.dirPath(p)); id == (dirid.ID{}) || id != d.dirs[p] {
			return true
		}
	}
	return false
}

// isKeyName says whether a directory entry may be a key. Files that begin with a dot belong to masters or to us.
func (d *disk) isKeyName(p place, name string) bool {
	if name == "" || name[0] == '.' {
		return false
	}
	if err := state.ValidMinionID(name); err != nil {
		d.invalid.warnOnce(p, name, err)
		return false
	}
	return true
}

// refreshKeys looks at the files of some ids.
func (d *disk) refreshKeys(ids []string) {
	for _, id := range ids {
		for _, p := range lookOrder {
			d.refreshFile(p, id)
		}
	}
}

// refreshFile brings what is known of one file up to date.
func (d *disk) refreshFile(p place, id string) {
	now := time.Now()
	sig, err := d.statFile(p, id)
	if errors.Is(err, fs.ErrNotExist) {
		delete(d.files[p], id)
		return
	}
	old, known := d.files[p][id]
	if err == nil && known && old.sig == sig && old.checked.Sub(sig.ctime) > racy {
		return
	}
	f := file{sig: sig, checked: now}
	if err == nil {
		text, err := d.readKey(p, id)
		if errors.Is(err, fs.ErrNotExist) {
			delete(d.files[p], id)
			return
		}
		if err == nil {
			f.print = printOf(text)
		} else if now.Sub(sig.mtime) > time.Minute {
			d.invalid.warnOnce(p, id, err)
		}
	}
	d.files[p][id] = f
}

func (d *disk) statFile(p place, id string) (signature, error) {
	info, err := os.Lstat(d.filePath(p, id))
	if err != nil {
		return signature{}, err
	}
	sig := signature{size: info.Size(), mode: info.Mode(), mtime: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		sig.ino, sig.ctime = st.Ino, time.Unix(st.Ctim.Unix())
	}
	return sig, nil
}

// readKey returns the text of a key file. It follows no link and waits for no pipe.
func (d *disk) readKey(p place, id string) (string, error) {
	f, err := os.OpenFile(d.filePath(p, id), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errNoKey
	}
	content, err := io.ReadAll(io.LimitReader(f, state.MaxPub+1))
	if err != nil {
		return "", err
	}
	return checkText(content)
}

// readEntry returns the text of a key that was seen, or an error when something else is there by now.
func (d *disk) readEntry(s subject, e entry) (string, error) {
	p := placeOf(e.State)
	if s.denied {
		p = deniedDir
	}
	text, err := d.readKey(p, s.id)
	if err != nil {
		return "", err
	}
	if printOf(text) != e.Print {
		return "", errChanged
	}
	return text, nil
}

var errChanged = errors.New("the file has changed in the meantime")

// foundFor tells what was found of an id at the last look.
func (d *disk) foundFor(id string) diskState {
	var s diskState
	for _, p := range keyPlaces {
		f, ok := d.files[p][id]
		switch {
		case !ok:
		case s.key.entry != entry{}:
			s.key.twice = true
		case f.print == "":
			s.key.garbage = true
		default:
			s.key.entry, s.key.modified = entry{p.keyState(), f.print}, f.sig.mtime
			s.key.twice = s.key.garbage
		}
	}
	if s.key.entry != (entry{}) {
		s.key.garbage = false
		s.key.temp = stockTemp.MatchString(id)
	}
	if f, ok := d.files[deniedDir][id]; ok {
		s.denied.garbage, s.denied.modified = f.print == "", f.sig.mtime
		if f.print != "" {
			s.denied.entry = entry{deniedState, f.print}
		}
	}
	return s
}

// hasChanged says whether an id is not any more as it was at the last look.
func (d *disk) hasChanged(s subject) bool {
	for _, p := range placesOf(s) {
		sig, err := d.statFile(p, s.id)
		f, known := d.files[p][s.id]
		if known != (err == nil) || known && f.sig != sig {
			return true
		}
	}
	return false
}

func placesOf(s subject) []place {
	if s.denied {
		return []place{deniedDir}
	}
	return keyPlaces[:]
}
