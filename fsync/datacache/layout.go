package datacache

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"saltclusterd/fsync/msgpack"
)

// data is what a master has cached of one minion.
type data struct {
	main    []byte   // a msgpack map: the grains, or the mine; empty: a mine that is gone
	pillars []pillar // msgpack maps, that of no pillarenv first
}

type pillar struct {
	env string
	raw []byte
}

// fileSet are a minion's files: content by name within cachedir.
type fileSet map[string][]byte

// hash tells one content of a minion's files from another.
func (f fileSet) hash() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(f)) {
		sum := sha256.Sum256(f[name])
		h.Write([]byte(name + "\x00"))
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// layout is how a version of Salt keeps data in files.
type layout interface {
	// ids lists the minions that may have data, and looks again for what names cannot be computed. It needs no turn.
	ids(root *os.Root, known func(id string) bool) ([]string, error)
	// dirs lists where the files of minions are.
	dirs(ids []string) []string
	// names lists where data of a minion may be.
	names(id string) []string
	// parse returns the data in files, msgpack.ErrFormat when they are none.
	parse(id string, files fileSet) (data, error)
	// build returns the files that hold d, given those that are there. Others stay.
	build(id string, d data, have fileSet) fileSet
	// pillarsOf tells how many pillars of d build writes.
	pillarsOf(d data) int
	// drop removes data of a minion, purge all that salt-key removes with a key. Neither fails when nothing is there.
	drop(root *os.Root, id string) error
	purge(root *os.Root, id string) error
	// cleared says whether the data of a minion that are gone were removed on purpose.
	cleared(root *os.Root, id string) bool
}

func newLayout(k Kind, m Master) layout {
	switch {
	case k == Mine && m.Major < splitSince:
		return joinedMine{}
	case k == Mine:
		return splitMine{}
	case m.Major < splitSince:
		return joined{}
	}
	return &split{pillars: m.pillarsOff() == "", envs: envs{}}
}

// suffix is what localfs gives its files.
const suffix = ".p"

// listDir lists the names in a directory of the cache; one that is missing is empty.
func listDir(root *os.Root, name string) ([]string, error) {
	d, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	return names, errors.Join(err, d.Close())
}

// joined is the layout of 3006 and 3007: one file with both (salt/master.py AESFuncs._pillar).
type joined struct{}

const joinedBank = "minions"

func (joined) ids(root *os.Root, _ func(string) bool) ([]string, error) {
	names, err := listDir(root, joinedBank)
	return slices.DeleteFunc(names, func(id string) bool { return !validID(id) }), err
}

func (joined) dirs(ids []string) []string {
	var out []string
	for _, id := range ids {
		out = append(out, path.Join(joinedBank, id))
	}
	return out
}

func (joined) names(id string) []string { return []string{path.Join(joinedBank, id, "data"+suffix)} }

func (l joined) parse(id string, files fileSet) (d data, err error) {
	err = msgpack.Entries(files[l.names(id)[0]], func(key string, value []byte) {
		switch {
		case key == "grains" && msgpack.WholeMap(value):
			d.main = value
		case key == "pillar" && msgpack.WholeMap(value):
			d.pillars = []pillar{{raw: value}}
		}
	})
	if err == nil && d.main == nil {
		err = msgpack.ErrFormat
	}
	return d, err
}

func (l joined) build(id string, d data, have fileSet) fileSet {
	if len(d.pillars) == 0 {
		if old, err := l.parse(id, have); err == nil {
			d.pillars = old.pillars
		}
	}
	out := []byte{0x81}
	out = append(msgpack.AppendShort(out, "grains"), d.main...)
	if len(d.pillars) > 0 {
		out[0] = 0x82
		out = append(msgpack.AppendShort(out, "pillar"), d.pillars[0].raw...)
	}
	return fileSet{l.names(id)[0]: out}
}

func (joined) pillarsOf(d data) int { return min(1, len(d.pillars)) }

func (l joined) drop(root *os.Root, id string) error { return remove(root, l.names(id)...) }

// cleared: a minion always has grains, so they were lost.
func (joined) cleared(*os.Root, string) bool { return false }

// purge removes the whole directory, as salt/key.py check_minion_cache does.
func (joined) purge(root *os.Root, id string) error {
	return root.RemoveAll(path.Join(joinedBank, id))
}

// split is the layout of 3008: a bank of grains (salt/master.py AESFuncs._pillar) and one of pillars by minion and
// pillarenv (salt/pillar/__init__.py PillarCache.pillar_key).
type split struct {
	pillars bool // pillars of others are written

	listing sync.Mutex // held while ids lists

	mu    sync.Mutex // guards what follows
	envs  envs
	noted envs // since ids began to list; nil: it does not
}

// envs are pillarenvs seen, by id.
type envs map[string]map[string]bool

func (e envs) add(id, env string) {
	if e[id] == nil {
		e[id] = map[string]bool{}
	}
	e[id][env] = true
}

const (
	grainsBank = "grains"
	pillarBank = "pillar"
)

func pillarName(id, env string) string {
	if env != "" {
		id += ":" + env
	}
	return path.Join(pillarBank, id+suffix)
}

func (l *split) ids(root *os.Root, known func(string) bool) ([]string, error) {
	if err := l.lookForEnvs(root, known); err != nil {
		return nil, err
	}
	names, err := listDir(root, grainsBank)
	var ids []string
	for _, name := range names {
		if id, ok := strings.CutSuffix(name, suffix); ok && validID(id) {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// lookForEnvs replaces what was seen by what there is, and by what others note meanwhile.
func (l *split) lookForEnvs(root *os.Root, known func(string) bool) error {
	l.listing.Lock()
	defer l.listing.Unlock()
	l.mu.Lock()
	l.noted = envs{}
	l.mu.Unlock()
	names, err := listDir(root, pillarBank)
	found := envs{}
	for _, name := range names {
		key, ok := strings.CutSuffix(name, suffix)
		if id, env, isEnv := strings.Cut(key, ":"); ok && isEnv && !known(key) && validID(id) && validEnv(env) {
			found.add(id, env)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		for id, of := range l.noted {
			for env := range of {
				found.add(id, env)
			}
		}
		l.envs = found
	}
	l.noted = nil
	return err
}

func (l *split) note(id, env string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.envs.add(id, env)
	if l.noted != nil {
		l.noted.add(id, env)
	}
}

func (*split) dirs([]string) []string { return []string{grainsBank, pillarBank} }

func (l *split) names(id string) []string {
	out := []string{path.Join(grainsBank, id+suffix), pillarName(id, "")}
	l.mu.Lock()
	defer l.mu.Unlock()
	for env := range l.envs[id] {
		if len(out) > maxPillars {
			break
		}
		out = append(out, pillarName(id, env))
	}
	return out
}

func (l *split) parse(id string, files fileSet) (d data, err error) {
	if d.main = files[path.Join(grainsBank, id+suffix)]; !msgpack.WholeMap(d.main) {
		return data{}, msgpack.ErrFormat
	}
	for name, raw := range files {
		key, ok := strings.CutPrefix(name, pillarBank+"/"+id)
		if ok && msgpack.WholeMap(raw) {
			d.pillars = append(d.pillars, pillar{strings.TrimPrefix(strings.TrimSuffix(key, suffix), ":"), raw})
		}
	}
	slices.SortFunc(d.pillars, func(a, b pillar) int { return cmp.Compare(a.env, b.env) })
	return d, nil
}

func (l *split) build(id string, d data, _ fileSet) fileSet {
	out := fileSet{path.Join(grainsBank, id+suffix): d.main}
	if !l.pillars {
		return out
	}
	for _, p := range d.pillars {
		if p.env != "" {
			l.note(id, p.env)
		}
		out[pillarName(id, p.env)] = p.raw
	}
	return out
}

func (l *split) pillarsOf(d data) int {
	if !l.pillars {
		return 0
	}
	return len(d.pillars)
}

func (l *split) drop(root *os.Root, id string) error {
	err := remove(root, l.names(id)...)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.envs, id)
	delete(l.noted, id)
	return err
}

// purge removes the mine, too: 3006 does, 3008 forgets it, and a new minion of that name is another one.
func (l *split) purge(root *os.Root, id string) error {
	return errors.Join(l.drop(root, id), remove(root, splitMine{}.names(id)...))
}

// cleared as with joined.
func (*split) cleared(*os.Root, string) bool { return false }

// remove removes those of the files that are there.
func remove(root *os.Root, names ...string) error {
	var errs []error
	for _, name := range names {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
