package router

import "saltclusterd/sidecar/saltwire"

// readsFile says whether a command asks for one file, by its path.
func readsFile(name string) bool {
	switch name {
	case "_file_find", "_file_hash", "_file_hash_and_stat", "_serve_file":
		return true
	}
	return false
}

// decideFile sends a question for a file that a minion has pushed to where _file_recv put it; of anything else all
// masters have the same.
func (v View) decideFile(p saltwire.Peek) Decision {
	if v.Pusher != nil && readsFile(p.Cmd) {
		path, _ := p.Raw.Path.Text()
		if minion := v.Pusher(string(path)); minion != "" {
			return v.toRanked(v.rankUsable(minion))
		}
	}
	return v.preferLocal(p.ID)
}
