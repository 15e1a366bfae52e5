package keydir

import (
	"log/slog"
	"path/filepath"
)

// invalidEntries warns once about each directory entry that is not the key of a minion.
type invalidEntries struct {
	log    *slog.Logger
	warned map[invalidEntry]struct{}
}

type invalidEntry struct {
	place place
	name  string
}

// maxInvalidEntries bounds what is remembered; then all are warned about again.
const maxInvalidEntries = 1000

func (o *invalidEntries) warnOnce(p place, name string, err error) {
	key := invalidEntry{p, name}
	if _, ok := o.warned[key]; ok {
		return
	}
	if o.warned == nil || len(o.warned) >= maxInvalidEntries {
		o.warned = map[invalidEntry]struct{}{}
	}
	o.warned[key] = struct{}{}
	o.log.Warn("directory entry is not a minion key and stays as it is", "path", filepath.Join(p.String(), name), "err", err)
}
