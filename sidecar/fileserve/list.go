package fileserve

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"
)

const (
	walkTimeout = 30 * time.Second
	walkAgain   = 3 // times, when the files were changed meanwhile
)

// listed are the lists of an environment and how long they hold.
type listed struct {
	*lists
	set   *Settings
	file  listStamp // the master's file they are the same as; zero: none was written
	at    time.Time // of the walk
	asked uint64    // Server.forgets then
}

type listKey struct {
	set *Settings
	env string
}

// listReply answers the commands that list an environment.
func (s *Server) listReply(ctx context.Context, r *room, set *Settings, cmd string, l Load) ([]byte, error) {
	if !set.Alone {
		return nil, ErrForward
	}
	none := emptyList
	if cmd == "_symlink_list" {
		none = emptyMap
	}
	if !l.HasEnv {
		return none, nil
	}
	if !plainName(l.Env) || len(leaf(l.Env)) > maxLeaf {
		return nil, ErrForward
	}
	if cmd != "_file_list_emptydirs" && !l.Backends.includesRoots() {
		return none, nil
	}
	dirs, known, dynamic := set.envDirs(l.Env)
	if !known || dynamic && dirs == nil {
		return none, nil
	}
	all, err := s.loadLists(ctx, set, l.Env, dirs, dynamic)
	if err != nil {
		return nil, err
	}
	if err := r.reserveMemory(ctx, all.weight); err != nil {
		return nil, err
	}
	prefix := strings.Trim(l.Prefix, "/")
	switch cmd {
	case "_symlink_list":
		return all.linksReply(prefix), nil
	case "_dir_list":
		return listReply(namesWithin(all.dirs, prefix)), nil
	case "_file_list_emptydirs":
		return listReply(namesWithin(all.empty, prefix)), nil
	}
	return listReply(namesWithin(all.files, prefix)), nil
}

// namesWithin are the names of a sorted list that begin with prefix.
func namesWithin(names []string, prefix string) []string {
	if prefix == "" {
		return names
	}
	from, to := findRange(len(names), func(i int) int {
		if strings.HasPrefix(names[i], prefix) {
			return 0
		}
		return strings.Compare(names[i], prefix)
	})
	return names[from:to]
}

// findRange finds where where is zero; it must be negative before that and positive behind.
func findRange(n int, where func(int) int) (from, to int) {
	first := func(at func(int) bool) int {
		lo, hi := 0, n
		for lo < hi {
			if mid := (lo + hi) / 2; at(mid) {
				hi = mid
			} else {
				lo = mid + 1
			}
		}
		return lo
	}
	return first(func(i int) bool { return where(i) >= 0 }), first(func(i int) bool { return where(i) > 0 })
}

// loadLists gets the lists of an environment: from memory, from the master's file, from the disk.
func (s *Server) loadLists(ctx context.Context, set *Settings, env string, dirs []string, dynamic bool) (*lists,
	error) {
	name := set.listFile(env)
	l, err := s.keptLists(ctx, set, env, name)
	if err != nil {
		return nil, err
	}
	if l != nil {
		return l.lists, l.err
	}
	l, err = s.listing.doOnce(ctx, s.makers, listKey{set, env}, func(ctx context.Context) (*listed, error) {
		if err := s.disk.takeSlot(ctx, s.cfg.SlotTimeout); err != nil {
			return nil, err
		}
		defer s.disk.freeSlot()
		if l := s.knownLists(set, env, name); l != nil {
			return l, nil
		}
		return s.makeLists(ctx, set, env, name, dirs, dynamic)
	})
	if err != nil {
		return nil, err
	}
	return l.lists, l.err
}

// keptLists is knownLists, where disks may be slow.
func (s *Server) keptLists(ctx context.Context, set *Settings, env, name string) (*listed, error) {
	if err := s.disk.takeSlot(ctx, s.cfg.SlotTimeout); err != nil {
		return nil, err
	}
	defer s.disk.freeSlot()
	return s.knownLists(set, env, name), nil
}

// knownLists are the lists in memory, if they are what the master's file says, or there is none and they are young
// enough.
func (s *Server) knownLists(set *Settings, env, name string) *listed {
	l, ok := s.envs.get(env)
	if !ok || l.set != set || l.asked != s.forgets.Load() {
		return nil
	}
	stamp, err := stampOf(name)
	now := s.cfg.Now()
	switch {
	case err != nil:
		return nil
	case l.file.exists && l.file == stamp && stamp.isFresh(now, set.ListTime):
		return l
	case !l.file.exists && !stamp.exists && now.Sub(l.at) < set.ListTime && !now.Before(l.at):
		return l
	}
	return nil
}

// makeLists reads the master's file while it is fresh, else the directories.
func (s *Server) makeLists(ctx context.Context, set *Settings, env, name string, dirs []string,
	dynamic bool) (*listed, error) {
	l := &listed{set: set, asked: s.forgets.Load(), at: s.cfg.Now()}
	if kept, stamp := freshFile(name, l.at, set.ListTime); kept != nil {
		l.lists, l.file = kept, stamp
		s.envs.put(env, l, l.weight)
		return l, nil
	}
	for range walkAgain {
		l.asked, l.at = s.forgets.Load(), s.cfg.Now()
		walking, cancel := context.WithTimeout(ctx, walkTimeout)
		all, err := set.walkDirs(walking, dirs)
		cancel()
		if errors.Is(err, errNames) || errors.Is(err, errLarge) || errors.Is(err, errHidden) {
			l.lists = &lists{err: ErrForward, weight: 256}
			s.envs.put(env, l, l.weight)
			return l, nil
		}
		if err != nil {
			return nil, err
		}
		if l.lists = all; l.asked != s.forgets.Load() {
			continue // what it saw may be half of a change
		}
		if set.ListTime > 0 && !(dynamic && noneExists(dirs)) {
			s.keepLists(name, l)
		}
		s.envs.put(env, l, l.weight)
		return l, nil
	}
	return l, nil
}

// freshFile reads the master's file if it is young enough, and was not written meanwhile.
func freshFile(name string, now time.Time, keep time.Duration) (*lists, listStamp) {
	stamp, err := stampOf(name)
	if err != nil || !stamp.isFresh(now, keep) {
		return nil, stamp
	}
	l, err := readLists(name)
	if err != nil {
		return nil, stamp
	}
	if after, err := stampOf(name); err != nil || after != stamp {
		return nil, stamp
	}
	return l, stamp
}

// keepLists writes the lists where the master looks for them.
func (s *Server) keepLists(name string, l *listed) {
	if err := writeLists(name, l.lists); err != nil {
		s.log.Debug("list of files not kept", "path", name, "err", err)
		return
	}
	if l.asked != s.forgets.Load() {
		_ = os.Remove(name)
		return
	}
	if stamp, err := stampOf(name); err == nil {
		l.file = stamp
	}
}

// noneExists is so of environments that anybody can make up: nothing is written for them.
func noneExists(dirs []string) bool {
	for _, d := range dirs {
		if _, ok, _ := statPath(d); ok {
			return false
		}
	}
	return true
}
