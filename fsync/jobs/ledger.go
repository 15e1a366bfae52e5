package jobs

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/fsync/ledger"
)

// maxRead is up to how many returns of a job are read for its hash. Of more, their names and sizes count: a job of ten
// thousand minions has ten thousand files.
const maxRead = 32

var errNotYet = errors.New("the first scan of all jobs is not finished")

// Ledger tells what the local master has on disk: the number of returns of each job and a hash of it all; which jobs
// its cleaning has removed; and which are changing right now. Those that are nearly over are left out.
func (s *Store) Ledger() (ledger.Ledger, error) {
	if s.Off() != "" {
		return ledger.Ledger{Off: s.Off()}, nil
	}
	if !s.Ready() {
		return ledger.Ledger{}, errNotYet
	}
	l := ledger.Ledger{Items: map[string]string{}, Made: map[string]int64{}}
	jids := s.index.told(&l)
	if n := len(jids) + len(l.Items); n > ledger.MaxItems {
		return ledger.Ledger{}, fmt.Errorf("%d jobs are too many to compare", n)
	}
	for _, jid := range jids {
		look, err := s.disk.look(jid)
		if gone(err) {
			continue
		}
		if err != nil {
			return ledger.Ledger{}, err
		}
		s.index.saw(jid, look)
		l.Made[jid] = look.at / int64(time.Second)
		if look.half || s.cfg.Now().Sub(time.Unix(0, look.dir)) < s.cfg.Timing.Rest {
			l.Items[jid] = ledger.Moving
			continue
		}
		if l.Items[jid], err = s.disk.text(jid, look); err != nil && !gone(err) {
			return ledger.Ledger{}, err
		}
	}
	return l, nil
}

// told lists the jobs for a ledger, and notes in it what this node needs not have.
func (x *index) told(l *ledger.Ledger) (jids []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.keep > 0 { // well before they are removed anywhere: clocks differ
		l.Since = x.now().Add(-x.keep * 8 / 10).Unix()
	}
	for jid := range x.gone {
		l.Items[jid] = ledger.Removed
	}
	for jid, j := range x.jobs {
		if j.at/int64(time.Second) >= l.Since {
			jids = append(jids, jid)
		}
	}
	return jids
}

// text is what a ledger tells of a job.
func (d disk) text(jid string, look sight) (string, error) {
	f, err := os.Open(d.path(jid))
	if err != nil {
		return "", err
	}
	defer f.Close()
	fd, n, h := int(f.Fd()), look.returns(), sha256.New()
	slices.SortFunc(look.items, func(a, b item) int { return strings.Compare(a.name, b.name) })
	for _, it := range look.items {
		if it.ret && n > maxRead {
			sizes(h, fd, it)
			continue
		}
		r, err := d.record(fd, it)
		if err != nil {
			r = &record{data: []byte(err.Error())}
		}
		hashed(h, []byte(it.name), r.data, r.out)
	}
	text := strconv.Itoa(n) + " returns " + hex.EncodeToString(h.Sum(nil)[:8])
	if look.damaged > 0 {
		text += ", " + strconv.Itoa(look.damaged) + " damaged"
	}
	return text, nil
}

// sizes stand for what is in a return.
func sizes(h hash.Hash, fd int, it item) {
	var st unix.Stat_t
	out := int64(-1)
	if unix.Fstatat(fd, it.name+"/"+outFile, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		out = st.Size
	}
	_ = unix.Fstatat(fd, it.name+"/"+returnFile, &st, unix.AT_SYMLINK_NOFOLLOW)
	hashed(h, []byte(it.name), binary.AppendVarint(binary.AppendVarint(nil, st.Size), out))
}

func hashed(h hash.Hash, parts ...[]byte) {
	for _, p := range parts {
		_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(p))))
		_, _ = h.Write(p)
	}
}

// More says whether a job's text in one ledger tells of more returns than another.
func More(text, than string) bool {
	returns := func(text string) int {
		n, _, _ := strings.Cut(text, " ")
		i, _ := strconv.Atoi(n)
		return i
	}
	return returns(text) > returns(than)
}
