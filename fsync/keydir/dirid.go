package keydir

import "saltclusterd/fsync/dirid"

// findLostDir says which directory the base knows keys in is gone, or not the one it was: what is missing from it has
// not been deleted by anyone. Stock Salt makes such a directory anew, and empty, whenever it finds it missing
// (salt/utils/verify.py:verify_env).
func (l *loop) findLostDir() (place, bool) {
	for p := range places {
		was, now := l.m.base.Dirs[p.String()], dirid.Of(l.disk.dirPath(p))
		if (now == dirid.ID{} || was != "" && was != now.Text()) && l.basedIn(p) {
			return p, true
		}
	}
	return 0, false
}

// checkDirs distrusts directories of which one was lost. Consensus then decides about all keys, and puts them back.
func (l *loop) checkDirs() {
	if l.m.base.Stale != fresh {
		return
	}
	if p, lost := l.findLostDir(); lost {
		l.log.Warn("a key directory was removed or replaced: consensus decides about all keys", "path", l.disk.dirPath(p))
		l.m.markStale()
	}
}

// knowDirs notes which directories the base is about: those of the last scan.
func (l *loop) knowDirs() {
	for p := range places {
		if id := l.disk.dirs[p].Text(); l.m.base.Dirs[p.String()] != id {
			l.m.base.Dirs[p.String()] = id
			l.m.dirty = true
		}
	}
}
