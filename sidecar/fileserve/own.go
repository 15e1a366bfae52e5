package fileserve

import (
	"strings"

	"saltclusterd/durable"
)

// isOwn says whether a path below a root is something that saltclusterd keeps there for itself: what a change of the
// roots has replaced or removed, in a root that is a file system of its own. No minion may read what was removed,
// and the other masters do not have it.
func isOwn(rel string) bool {
	for rest := rel; ; {
		if strings.HasPrefix(rest, durable.Prefix) {
			return true
		}
		i := strings.IndexByte(rest, '/')
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
}
