package mines

import (
	"bytes"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/sidecar/saltvalue"
)

// editor decides what becomes of a mine, as Store.Change asks for it, and what the minion hears.
type editor func(now []byte) (then []byte, write bool, reply []byte, err error)

// What a master answers.
var (
	replyTrue  = []byte{0xc3}
	replyFalse = []byte{0xc2}
	emptyMap   = []byte{0x80}
)

// parseStore is RemoteFuncs._mine: entries are added or replaced.
func parseStore(d saltvalue.Fields) (editor, error) {
	raw, ok := d.Get("data")
	entries, isMap, err := readFields(raw)
	if err != nil {
		return nil, err
	}
	if !ok || !isMap {
		return nil, saltvalue.Needs("a mine that is not a map")
	}
	if clearFirst, ok := d.Get("clear"); ok && saltvalue.Truth(clearFirst) {
		return nil, saltvalue.Needs("a mine that is to be cleared first")
	}
	return func(now []byte) ([]byte, bool, []byte, error) {
		mine, err := parseMine(now)
		if err != nil {
			return nil, false, nil, err
		}
		return mergeMines(mine, entries).Raw(), true, replyTrue, nil
	}, nil
}

// parseDelete is RemoteFuncs._mine_delete: one entry is removed.
func parseDelete(d saltvalue.Fields) (editor, error) {
	raw, _ := d.Get("fun")
	fun, ok := saltvalue.Text(raw)
	if !ok {
		return nil, saltvalue.Needs("the name of a function that is not text")
	}
	return func(now []byte) ([]byte, bool, []byte, error) {
		mine, err := parseMine(now)
		if err != nil || !mine.Has(fun) {
			return nil, false, replyTrue, err
		}
		mine, _ = mine.Drop(fun)
		return mine.Raw(), true, replyTrue, nil
	}, nil
}

// flushMine is RemoteFuncs._mine_flush: the mine is removed, and the minion hears whether there was one.
func flushMine(now []byte) ([]byte, bool, []byte, error) {
	if now == nil {
		return nil, false, replyFalse, nil
	}
	return nil, true, replyTrue, nil
}

// parseMine reads a mine as a master does before it changes and writes it again; nil is an empty one.
func parseMine(now []byte) (saltvalue.Fields, error) {
	if now == nil {
		return nil, nil
	}
	raw, rest, err := saltvalue.AppendAgain(make([]byte, 0, len(now)), now)
	if err != nil {
		return nil, err
	}
	f, ok := saltvalue.ParseFields(raw)
	if !ok || len(rest) > 0 {
		return nil, saltvalue.Needs("a file that holds no mine")
	}
	return f, checkExpiry(f)
}

// checkExpiry is nil unless a master takes a map for something else: one with a time until which it counts
// (salt/cache/__init__.py fetch).
func checkExpiry(f saltvalue.Fields) error {
	if len(f) == 2 && f.Has("data") && f.Has("_expires") {
		return saltvalue.Needs("a mine that expires")
	}
	return nil
}

// many is from how many entries on a mine is looked up in an index of its own.
const many = 16

// mergeMines is dict.update.
func mergeMines(mine, entries saltvalue.Fields) saltvalue.Fields {
	var index map[string]int
	if len(mine)+len(entries) > many {
		index = make(map[string]int, len(mine)+len(entries))
		for i := range mine {
			index[string(mine[i].Key)] = i
		}
	}
	for _, e := range entries {
		at := findEntry(mine, index, e.Key)
		if at >= 0 {
			mine[at].Val = e.Val
			continue
		}
		if index != nil {
			index[string(e.Key)] = len(mine)
		}
		mine = append(mine, e)
	}
	return mine
}

func findEntry(mine saltvalue.Fields, index map[string]int, key []byte) int {
	if index != nil {
		if i, ok := index[string(key)]; ok {
			return i
		}
		return -1
	}
	for i := range mine {
		if bytes.Equal(mine[i].Key, key) {
			return i
		}
	}
	return -1
}

// isNil says whether a raw value is None.
func isNil(raw []byte) bool { return msgp.NextType(raw) == msgp.NilType }
