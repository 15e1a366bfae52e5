package roots

import (
	"bytes"
	"sync"
)

const (
	// maxRecent bounds what is remembered of small files that were edited last, maxRecentFile each.
	maxRecent     = 8 << 20
	maxRecentFile = 64 << 10
)

// recent is the content of small files as it was when they were last read. A program that writes a file again and again
// has replaced what a revision names before another node could fetch it; the revision, and all else that is in it,
// would be of no use.
type recent struct {
	mu      sync.Mutex
	content map[Hash][]byte
	order   []Hash // the oldest first
	bytes   int
}

func (r *recent) add(h Hash, content []byte) {
	if len(content) > maxRecentFile {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.content[h]; ok {
		return
	}
	if r.content == nil {
		r.content = map[Hash][]byte{}
	}
	r.content[h], r.order, r.bytes = bytes.Clone(content), append(r.order, h), r.bytes+len(content)
	for r.bytes > maxRecent || len(r.order) > maxRecent>>9 {
		r.bytes -= len(r.content[r.order[0]])
		delete(r.content, r.order[0])
		r.order = r.order[1:]
	}
}

func (r *recent) get(h Hash) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, ok := r.content[h]
	return b, ok
}
