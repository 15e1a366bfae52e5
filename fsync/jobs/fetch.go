package jobs

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// inOrder puts items into the order in which they may appear: a job's list of minions, then its load, then returns. A
// stock master fails on a load without a list.
func inOrder(items []item) {
	place := func(it item) int {
		switch {
		case it.ret:
			return 3
		case it.name == loadFile:
			return 2
		}
		return 1
	}
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a.name, b.name))
	})
}

// fetch reads items of a job and gives them to take, until that says no. Those that cannot be read are given to skip.
func (d disk) fetch(jid string, at int64, items []item, take func(*record) error, skip func(item, error)) error {
	f, err := os.Open(d.path(jid))
	if err != nil {
		return err
	}
	defer f.Close()
	inOrder(items)
	for _, it := range items {
		r, err := d.record(int(f.Fd()), it)
		if err != nil {
			skip(it, err)
			continue
		}
		r.jid, r.at = jid, at
		if err := take(r); err != nil {
			return err
		}
	}
	return nil
}

func (d disk) record(fd int, it item) (*record, error) {
	if !it.ret {
		raw, err := d.read(fd, it.name)
		return &record{name: it.name, mtime: it.mtime, data: raw}, err
	}
	ahead := d.ahead(fd, it.name)
	raw, err := d.read(fd, it.name+"/"+returnFile)
	if err != nil {
		return nil, err
	}
	r := &record{name: it.name, ret: true, data: raw}
	var st unix.Stat_t
	if unix.Fstatat(fd, it.name+"/"+outFile, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		r.hasO = true
		r.out, err = d.read(fd, it.name+"/"+outFile)
	}
	r.ahead = ahead || d.ahead(fd, it.name) // it comes before the return, and goes after it
	return r, err
}

func (d disk) ahead(fd int, minion string) bool {
	var st unix.Stat_t
	return unix.Fstatat(fd, minion+"/"+AheadFile, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}
