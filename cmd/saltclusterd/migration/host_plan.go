package migration

import (
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/fsync/share"
	"saltclusterd/fsync/unshare"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
)

// planTimeout is how long the share may take for what a plan asks of it.
const planTimeout = 10 * time.Second

// copiesDir returns where copies go; the default when an operator names no directory. Salt puts root_dir before paths
// that are not below it.
func (h *Host) copiesDir(to string) string {
	if to != "" {
		return to
	}
	return filepath.Join(h.c.Master().RootDir, "var/lib/salt-master")
}

// makePlan says what would be moved where.
func (h *Host) makePlan(to string) unshare.Plan {
	made := make(chan unshare.Plan, 1)
	go func() { // ends when the disk answers
		master := h.c.Master()
		made <- unshare.Make(describeMaster(master, h.c.Options), h.copiesDir(to), func(path string) bool {
			return share.Contains(master.PkiDir, h.c.Options.Paths.StateDir, path)
		})
	}()
	select {
	case p := <-made:
		return p
	case <-time.After(planTimeout):
		return unshare.Plan{Refused: []string{"the share does not answer"}}
	}
}

// describeMaster collects what package unshare has to know of the master.
func describeMaster(c *localmaster.Config, cfg *config.Config) unshare.Master {
	m := unshare.Master{
		ConfigFile: c.Path, PkiDir: c.PkiDir, CacheDir: c.CacheDir, SetBy: c.SetBy,
		Roots: map[string]map[string][]string{
			localmaster.FileRoots: c.Roots(localmaster.FileRoots), localmaster.PillarRoots: c.Roots(localmaster.PillarRoots),
		},
		OwnDirs: map[string]string{
			"state_dir": cfg.Paths.StateDir, "run_dir": cfg.Paths.RunDir, "sock_dir": c.SockDir,
			"cluster_pki_dir of saltclusterd": cfg.Cluster.PKIDir,
		},
		Others: map[string]string{},
	}
	for _, option := range c.Names() {
		switch option {
		case "pki_dir", "cachedir", "sock_dir", "file_roots", "pillar_roots", "conf_file", "root_dir":
			continue
		}
		if c.SetBy(option) == "" {
			continue // a default, below one of the others
		}
		paths := c.Strings(option)
		if text := c.Text(option); text != "" {
			paths = []string{text}
		}
		for _, path := range paths {
			if !filepath.IsAbs(path) {
				continue
			}
			if rel, err := filepath.Rel(c.CacheDir, path); err != nil || !filepath.IsLocal(rel) {
				m.Others[option] = path
			}
		}
	}
	return m
}

// describePlan lists in order what will be done; trees are the sizes of the plan's.
func (h *Host) describePlan(p unshare.Plan, to string, trees []unshare.Size) []string {
	files, err := h.renderDropIns(p)
	if err != nil {
		return []string{err.Error()}
	}
	var steps []string
	add := func(format string, args ...any) { steps = append(steps, fmt.Sprintf(format, args...)) }
	if request := h.requestDirs(p, to); request != nil {
		for _, cmd := range request.Commands {
			add("by hand: %s", cmd)
		}
	}
	for i, t := range p.Trees {
		add("copy %s to %s (%d files, %d MiB), owner and modes kept, compared by hash",
			t.From, t.To, trees[i].Files, trees[i].Bytes>>20)
	}
	add("copy again what has changed in the meantime")
	for _, e := range p.Edits {
		add("by hand: %s", editCommand(e))
	}
	add("write %s: %s", files.master, strings.Join(slices.Sorted(maps.Keys(p.Options)), ", "))
	add("write %s: %s", files.own, strings.TrimSpace(ownOption))
	for _, t := range p.Trees {
		if t.Link != "" {
			add("replace the link %s with the copy", t.Link)
		}
	}
	add("replace the running saltclusterd with a new process that has the new configuration; " +
		"minions keep their connections")
	if cmd := h.c.Options.Salt.RestartCommand; len(cmd) > 0 {
		add("restart the salt-master: %s; the other masters do its work in the meantime", strings.Join(cmd, " "))
	} else {
		add("by hand: %s; the other masters do its work in the meantime", restartByHand)
	}
	add("wait until it serves minions and has all data of the cluster")
	return steps
}

const restartByHand = "systemctl restart salt-master"

// editCommand returns the command that makes an edit.
func editCommand(e unshare.Edit) string {
	return fmt.Sprintf("sed -i 's|%s|%s|' %s", e.From, e.To, e.File)
}

// requestDirs asks the operator for those directories of the copies that this process, which need not run as root, may
// not make; nil: none.
func (h *Host) requestDirs(p unshare.Plan, to string) *adminapi.MigrateByHand {
	name := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	request := &adminapi.MigrateByHand{Why: fmt.Sprintf("saltclusterd runs as %s and may not write there", name)}
	requested := map[string]bool{}
	for _, t := range p.Trees {
		dir := h.copiesDir(to)
		if t.Link != "" {
			dir = filepath.Dir(t.To)
		}
		if requested[dir] || unshare.MayMake(dir) {
			continue
		}
		requested[dir] = true
		request.Commands = append(request.Commands, fmt.Sprintf("install -d -o %s -m 0750 %s", name, dir))
	}
	if len(request.Commands) == 0 {
		return nil
	}
	return request
}

// checkPeerDir decides whether another node may have the share copied to a directory of its choice. An attacker with a
// stolen certificate may have chosen it, so it must exist already and hold nothing but what such a copy holds.
func (h *Host) checkPeerDir(to string) error {
	if to == "" || filepath.Clean(to) == h.copiesDir("") {
		return nil
	}
	names := map[string]bool{}
	for _, t := range h.makePlan(to).Trees {
		if rel, err := filepath.Rel(to, t.To); err == nil {
			first, _, _ := strings.Cut(rel, string(filepath.Separator))
			names[first] = true
		}
	}
	entries, err := os.ReadDir(to)
	if err != nil {
		return adminapi.Errorf(adminapi.CodeRefused, "create it first: mkdir "+to,
			"%s accepts a directory from another node only if it exists: %v", h.c.Node, err)
	}
	for _, e := range entries {
		if !names[e.Name()] {
			return adminapi.Errorf(adminapi.CodeRefused, "name an empty directory",
				"%s accepts a directory from another node only if it is empty, but %s contains %q", h.c.Node, to, e.Name())
		}
	}
	return nil
}
