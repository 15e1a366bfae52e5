package keydir

import "log/slog"

// oddNames warns once about each directory entry that is not the key of a minion.
type oddNames struct {
	log    *slog.Logger
	warned map[oddName]struct{}
}

type oddName struct {
	place place
	name  string
}

// maxOdd bounds what is remembered; then all are warned about again.
const maxOdd = 1000

func (o *oddNames) warnOnce(p place, name string, err error) {
	key := oddName{p, name}
	if _, ok := o.warned[key]; ok {
		return
	}
	if o.warned == nil || len(o.warned) >= maxOdd {
		o.warned = map[oddName]struct{}{}
	}
	o.warned[key] = struct{}{}
	o.log.Warn("directory entry is not a minion key and stays as it is", "dir", p.String(), "name", name, "err", err)
}
