package jobs

import (
	"cmp"
	"encoding/binary"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// Names of files in a job's directory (salt/returners/local_cache.py).
const (
	jidFile     = "jid"
	loadFile    = ".load.p"
	minionsFile = ".minions.p"
	noCacheFile = "nocache"
	endFile     = "endtime"
	returnFile  = "return.p"
	outFile     = "out.p"
)

// AheadFile lies beside a return that is in the job caches ahead of the node which published its job; it is empty, and
// the same file as sidecar/jobcache.AheadFile. It is sent with the return. Where the return is already, the file stays;
// it is removed when the return comes without it, because then the publisher has taken the return.
const AheadFile = ".saltcluster-ahead"

// item is one thing in a job. Returns never change, so that their name says everything, but that they may be there
// ahead.
type item struct {
	name  string // of a head file, or of the minion
	ret   bool
	ahead bool // of a return; what is sent of an item does not tell
	rank  byte
	mtime int64 // nanoseconds
	size  int64
}

// beats says whether a head file is to be kept rather than another of that name.
func (it item) beats(o item) bool {
	return cmp.Or(cmp.Compare(it.rank, o.rank), cmp.Compare(milli(it.mtime), milli(o.mtime)),
		cmp.Compare(it.size, o.size)) > 0
}

// milli is what of a file's time is compared: some file systems know no more.
func milli(ns int64) int64 { return ns / int64(time.Millisecond) }

// hash is an item's share of its job's sum.
func (it item) hash() uint64 {
	switch {
	case it.ret && it.ahead:
		return xxhash.Sum64String(it.name + "/" + AheadFile)
	case it.ret:
		return xxhash.Sum64String(it.name)
	}
	b := append(make([]byte, 0, 64), 0) // no return begins like this
	b = append(append(b, it.name...), 0, it.rank)
	b = binary.BigEndian.AppendUint64(b, uint64(milli(it.mtime)))
	return xxhash.Sum64(binary.BigEndian.AppendUint64(b, uint64(it.size)))
}

func sumOf(items []item) (sum uint64) {
	for _, it := range items {
		sum += it.hash()
	}
	return sum
}

const maxName = 255

// validJID says whether text can be a job's id. What it is made of does not matter: directories are named by its hash.
func validJID(jid string) bool {
	return jid != "" && len(jid) <= maxName && utf8.ValidString(jid) &&
		strings.IndexFunc(jid, func(r rune) bool { return r < ' ' }) < 0
}

// validMinion says whether a name can be the directory of a return that a stock master reads.
func validMinion(name string) bool {
	switch name {
	case "", jidFile, noCacheFile, endFile:
		return false
	}
	return len(name) <= maxName && name[0] != '.' && !strings.ContainsAny(name, "/\x00")
}

// validHead says whether a name is one of the files that tell of a job as a whole.
func validHead(name string) bool {
	switch name {
	case loadFile, minionsFile, noCacheFile, endFile:
		return true
	}
	return len(name) <= maxName && strings.HasPrefix(name, ".minions.") && strings.HasSuffix(name, ".p") &&
		!strings.ContainsAny(name, "/\x00")
}
