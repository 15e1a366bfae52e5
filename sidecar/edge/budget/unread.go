package budget

import (
	"cmp"
	"slices"
	"sync"

	"saltclusterd/sidecar/edge/netconn"
)

// Unread shares a number of bytes among connections that have not read their answers yet. When room for another answer
// is lacking, those connections are cut that come before its own in this order: those on which no request was
// authenticated, those of the owner that holds most, those that hold most. If they hold too little, its own is cut.
type Unread struct {
	limit int64

	mu      sync.Mutex
	used    int64
	holders map[*Share]struct{}
}

// NewUnread returns an Unread of limit bytes.
func NewUnread(limit int64) *Unread { return &Unread{limit: limit, holders: map[*Share]struct{}{}} }

// Used returns the bytes that are held.
func (u *Unread) Used() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.used
}

// TakeRoom charges a connection for size bytes more. false: room is lacking, or the connection was cut to make room for
// others. Where nothing else is held, an answer finds room whatever its size.
func (u *Unread) TakeRoom(s *Share, size int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if s.dropped {
		return false
	}
	u.setBytes(s, s.unread+size)
	others := u.used - s.unread
	if need := min(u.used-u.limit, others); need > 0 && !u.makeRoom(need, s) {
		u.dropShare(s)
		return false
	}
	return true
}

// Adopt charges a connection that was taken over, whatever room there is.
func (u *Unread) Adopt(s *Share, size int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.setBytes(s, size)
}

// GiveBack takes back size of the bytes that a connection is charged for.
func (u *Unread) GiveBack(s *Share, size int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !s.dropped {
		u.setBytes(s, s.unread-size)
	}
}

// setBytes charges a connection for so many bytes. Wants mu.
func (u *Unread) setBytes(s *Share, size int64) {
	u.used += size - s.unread
	if s.unread = size; size > 0 {
		u.holders[s] = struct{}{}
	} else {
		delete(u.holders, s)
	}
}

// dropShare ends what a connection holds, which is about to end. Wants mu.
func (u *Unread) dropShare(s *Share) {
	u.setBytes(s, 0)
	s.dropped = true
}

// makeRoom cuts connections that come before asker until need bytes are free. false: they hold less, and none was cut.
// Wants mu.
func (u *Unread) makeRoom(need int64, asker *Share) bool {
	held := u.listBefore(asker)
	free := int64(0)
	for _, h := range held {
		free += h.bytes
	}
	if free < need {
		return false
	}
	slices.SortFunc(held, holder.compareTo)
	need += u.limit / 32 // so that this is not done again for the next answer
	for _, h := range held {
		u.dropShare(h.share)
		h.share.conn.Cut(netconn.ReasonOutput)
		if need -= h.bytes; need <= 0 {
			break
		}
	}
	return true
}

// holder is a connection with what decides when it is cut.
type holder struct {
	share *Share
	known bool  // a request on it was authenticated
	total int64 // bytes of its owner
	bytes int64
}

// compareTo orders holders: the first one is cut first.
func (h holder) compareTo(other holder) int {
	if h.known != other.known {
		if other.known {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(other.total, h.total), cmp.Compare(other.bytes, h.bytes))
}

// listBefore lists the holders that are cut before asker, in no order. Wants mu.
func (u *Unread) listBefore(asker *Share) (held []holder) {
	total := make(map[owner]int64, len(u.holders))
	for s := range u.holders {
		total[s.ownedBy()] += s.unread
	}
	of := func(s *Share) holder {
		return holder{share: s, known: s.minion.Load() != nil, total: total[s.ownedBy()], bytes: s.unread}
	}
	own := of(asker)
	for s := range u.holders {
		if h := of(s); s != asker && h.compareTo(own) < 0 {
			held = append(held, h)
		}
	}
	return held
}
