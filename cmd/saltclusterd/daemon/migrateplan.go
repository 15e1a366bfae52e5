package daemon

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/fsync/unshare"
	"saltclusterd/sidecar/localmaster"
)

const (
	// masterDropIn comes after the other files of master.d, by name.
	masterDropIn = "zzz-saltclusterd-isolated.conf"
	ownDropIn    = "zz-isolated.conf"
	// planWithin is how long the share may take for what a plan asks of it.
	planWithin = 10 * time.Second
)

// migrateTo is where copies go when nobody says otherwise. Salt puts root_dir before paths that are not below it.
func (d *Daemon) migrateTo(to string) string {
	if to != "" {
		return to
	}
	return filepath.Join(d.master.RootDir, "var/lib/salt-master")
}

// plan says what would be moved where.
func (g *migration) plan(to string) unshare.Plan {
	made := make(chan unshare.Plan, 1)
	go func() { // ends when the disk answers
		d := g.d
		made <- unshare.Make(planMaster(d.master, d.cfg), d.migrateTo(to), func(path string) bool {
			return sharedPath(d.master.PkiDir, d.cfg.Paths.StateDir, path)
		})
	}()
	select {
	case p := <-made:
		return p
	case <-time.After(planWithin):
		return unshare.Plan{Refused: []string{"the share does not answer"}}
	}
}

// planMaster says what package unshare must know of the master.
func planMaster(c *localmaster.Config, cfg *config.Config) unshare.Master {
	m := unshare.Master{
		ConfigFile: c.Path, PkiDir: c.PkiDir, CacheDir: c.CacheDir, SetBy: c.SetBy,
		Roots: map[string]map[string][]string{localmaster.FileRoots: c.Roots(localmaster.FileRoots), localmaster.PillarRoots: c.Roots(localmaster.PillarRoots)},
		OwnDirs: map[string]string{
			"state_dir": cfg.Paths.StateDir, "run_dir": cfg.Paths.RunDir, "sock_dir": c.SockDir, "cluster_pki_dir of saltclusterd": cfg.Cluster.PKIDir,
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
			if filepath.IsAbs(path) && !within(filepath.Clean(path), filepath.Clean(c.CacheDir)) {
				m.Others[option] = path
			}
		}
	}
	return m
}

// dropIns are the two files that a switch writes, with their texts.
func (g *migration) dropIns(p unshare.Plan) (master, own string, texts map[string]string, err error) {
	d := g.d
	globs := d.master.Strings("default_include")
	if len(globs) == 0 || filepath.Base(globs[0]) != "*.conf" {
		return "", "", nil, fmt.Errorf("default_include of the salt-master is %q: put pki_dir and the roots into its configuration by hand", globs)
	}
	dir := filepath.Dir(globs[0])
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(d.master.Path), dir)
	}
	master = filepath.Join(dir, masterDropIn)
	own = filepath.Join(config.DropInDir(d.cfg.Files()[0]), ownDropIn)
	options, err := yaml.Marshal(p.Options)
	if err != nil {
		return "", "", nil, fmt.Errorf("write the master's drop-in: %w", err)
	}
	const head = "# Written by saltclusterctl migrate: this master has left the shared file system.\n"
	return master, own, map[string]string{master: head + string(options), own: head + "cluster_isolated_filesystem: True\n"}, nil
}

// lacking lists what the two configurations do not say yet; with back what they must not say any more.
func (g *migration) lacking(p unshare.Plan, back bool) (master, own bool, edits []unshare.Edit) {
	d := g.d
	if c, err := config.Read(d.cfg.Files()[0]); err != nil && c == nil || c.Cluster.IsolatedFilesystem == back {
		own = true
	}
	c, err := localmaster.LoadConfig(d.cfg.Salt.Config, d.master.Version)
	if err != nil {
		return true, own, p.Edits
	}
	if pki, ok := p.Options["pki_dir"].(string); ok && (c.PkiDir == pki) == back {
		master = true
	}
	for _, option := range []string{localmaster.FileRoots, localmaster.PillarRoots} {
		if want, ok := p.Options[option].(map[string]any); ok && sameRoots(c.Roots(option), want) == back {
			master = true
		}
	}
	for _, e := range p.Edits {
		have := slices.Concat(slices.Collect(maps.Values(c.Roots(e.Option)))...)
		from, to := e.From, e.To
		if back {
			from, to = to, from
		}
		if slices.Contains(have, from) || !slices.Contains(have, to) {
			edits = append(edits, unshare.Edit{File: e.File, Option: e.Option, From: from, To: to})
		}
	}
	return master, own, edits
}

func sameRoots(have map[string][]string, want map[string]any) bool {
	if len(have) != len(want) {
		return false
	}
	for env, v := range want {
		dirs, _ := v.([]any)
		if len(dirs) != len(have[env]) {
			return false
		}
		for i := range dirs {
			if text, _ := dirs[i].(string); text != have[env][i] {
				return false
			}
		}
	}
	return true
}

// planSteps says in order what will be done.
func (g *migration) planSteps(p unshare.Plan, to string, trees []unshare.Size) []string {
	master, own, texts, err := g.dropIns(p)
	if err != nil {
		return []string{err.Error()}
	}
	var steps []string
	say := func(format string, args ...any) { steps = append(steps, fmt.Sprintf(format, args...)) }
	if ask := g.roomToWrite(p, to); ask != nil {
		for _, cmd := range ask.Commands {
			say("by hand: %s", cmd)
		}
	}
	for i, t := range p.Trees {
		say("copy %s to %s (%d files, %d MiB), owner and modes kept, compared by hash", t.From, t.To, trees[i].Files, trees[i].Bytes>>20)
	}
	say("copy again what has changed meanwhile")
	for _, e := range p.Edits {
		say("by hand: %s", editCommand(e))
	}
	say("write %s: %s", master, strings.Join(slices.Sorted(maps.Keys(p.Options)), ", "))
	say("write %s: %s", own, strings.TrimSpace(lastLine(texts[own])))
	for _, t := range p.Trees {
		if t.Link != "" {
			say("put the copy in the place of the link %s", t.Link)
		}
	}
	say("put a new saltclusterd in the place of the running one, which has the new configuration; minions keep their connections")
	if cmd := g.d.cfg.Salt.RestartCommand; len(cmd) > 0 {
		say("restart the salt-master: %s; others do its work meanwhile", strings.Join(cmd, " "))
	} else {
		say("by hand: %s; others do its work meanwhile", restartByHand)
	}
	say("wait until it serves minions and has what the cluster has")
	return steps
}

const restartByHand = "systemctl restart salt-master"

// editCommand is the command that makes an edit.
func editCommand(e unshare.Edit) string {
	return fmt.Sprintf("sed -i 's|%s|%s|' %s", e.From, e.To, e.File)
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// within says whether a clean path is dir or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
