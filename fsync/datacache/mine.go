package datacache

import (
	"os"
	"path"
	"slices"
	"strings"

	"saltclusterd/fsync/msgpack"
)

// joinedMine is where 3006 and 3007 keep mines (salt/daemons/masterapi.py RemoteFuncs._mine): beside grains and pillar.
type joinedMine struct{ oneFile }

func (joinedMine) ids(root *os.Root, known func(string) bool) ([]string, error) {
	return joined{}.ids(root, known)
}

func (joinedMine) dirs(ids []string) []string { return joined{}.dirs(ids) }

func (joinedMine) names(id string) []string {
	return []string{path.Join(joinedBank, id, "mine"+suffix)}
}

func (l joinedMine) build(id string, d data, _ fileSet) fileSet {
	return fileSet{l.names(id)[0]: d.main}
}

func (l joinedMine) drop(root *os.Root, id string) error  { return remove(root, l.names(id)...) }
func (l joinedMine) purge(root *os.Root, id string) error { return l.drop(root, id) }

// cleared: whoever loses a cache loses the minion's directory.
func (joinedMine) cleared(root *os.Root, id string) bool {
	return isDir(root, path.Join(joinedBank, id))
}

// splitMine is where 3008 keeps mines: in a bank of their own.
type splitMine struct{ oneFile }

const mineBank = "mine"

func (splitMine) ids(root *os.Root, _ func(string) bool) ([]string, error) {
	names, err := listDir(root, mineBank)
	var ids []string
	for _, name := range names {
		if id, ok := strings.CutSuffix(name, suffix); ok && validID(id) {
			ids = append(ids, id)
		}
	}
	return ids, err
}

func (splitMine) dirs([]string) []string { return []string{mineBank} }

func (splitMine) names(id string) []string { return []string{path.Join(mineBank, id+suffix)} }

func (l splitMine) build(id string, d data, _ fileSet) fileSet {
	return fileSet{l.names(id)[0]: d.main}
}

func (l splitMine) drop(root *os.Root, id string) error  { return remove(root, l.names(id)...) }
func (l splitMine) purge(root *os.Root, id string) error { return l.drop(root, id) }

// cleared: whoever loses a cache loses the bank.
func (splitMine) cleared(root *os.Root, _ string) bool { return isDir(root, mineBank) }

// oneFile is what both have in common: a mine is one map, which each version writes the same way.
type oneFile struct{}

func (oneFile) parse(_ string, files fileSet) (data, error) {
	for _, raw := range files {
		if msgpack.WholeMap(raw) {
			return data{main: slices.Clip(raw)}, nil
		}
	}
	return data{}, msgpack.ErrFormat
}

func (oneFile) pillarsOf(data) int { return 0 }

func isDir(root *os.Root, name string) bool {
	info, err := root.Stat(name)
	return err == nil && info.IsDir()
}
