package hostile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"saltclusterd/integration/lab"
)

// judgeJobs looks through a master's job cache for what was stored from here (salt/returners/local_cache.py):
// jobs/xx/rest/, with the job's id in "jid", loads in .load.p and .minions*.p, and a directory with return.p for each
// minion.
func (w *world) judgeJobs(n *lab.Node) error {
	root := filepath.Join(n.Master.CacheDir(), "jobs")
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil // removed meanwhile
		}
		rel, _ := filepath.Rel(root, path)
		w.judgeJobFile(n, filepath.ToSlash(rel), string(content))
		return nil
	})
}

func (w *world) judgeJobFile(n *lab.Node, path, content string) {
	parts := strings.Split(path, "/")
	name := parts[len(parts)-1]
	_, ours := marked(w.scene.seed, content)
	switch {
	case name == "jid" && strings.HasPrefix(content, unpublished) && w.scene.mustBeKnown(content):
		w.book.violated("jobs", content, "%s: job %s is stored", n.Name, clip(content))
	case !ours:
	case len(parts) > 3 && slices.Contains(jobNames, parts[2]):
		w.book.violated("returns", content, "%s: %s", n.Name, clip(path))
	case name == "return.p" && len(parts) == 4 && parts[2] != w.scene.own && !w.scene.ownResource(content, parts[2]):
		w.book.violated("returns", content, "%s: a return is stored for %q", n.Name, clip(parts[2]))
	case name == "return.p" && len(parts) != 4:
		w.book.violated("files", content, "%s: a return is stored in %s", n.Name, clip(path))
	case strings.HasPrefix(name, ".minions"):
		w.book.violated("returns", content, "%s: minions of a job are stored in %s", n.Name, clip(path))
	}
}
