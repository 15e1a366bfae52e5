package migration

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/fsync/unshare"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
)

const (
	// masterDropIn comes after the other files of master.d, by name.
	masterDropIn = "zzz-saltclusterd-isolated.conf"
	ownDropIn    = "zz-isolated.conf"
	ownOption    = "cluster_isolated_filesystem: True\n"
	dropInHead   = "# Written by saltclusterctl migrate: this master has left the shared file system.\n"
	// operatorPoll is how often is looked whether the operator has done what was asked for.
	operatorPoll = time.Second
)

// dropIns are the two files that a switch writes.
type dropIns struct {
	master, own string            // their paths
	texts       map[string]string // by path
}

// renderDropIns says what a switch would write where.
func (h *Host) renderDropIns(p unshare.Plan) (f dropIns, err error) {
	c := h.c.Master()
	globs := c.Strings("default_include")
	if len(globs) == 0 || filepath.Base(globs[0]) != "*.conf" {
		return f, fmt.Errorf("default_include of the salt-master is %q: "+
			"put pki_dir and the roots into its configuration by hand", globs)
	}
	dir := filepath.Dir(globs[0])
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(c.Path), dir)
	}
	options, err := yaml.Marshal(p.Options)
	if err != nil {
		return f, fmt.Errorf("write the master's drop-in: %w", err)
	}
	f.master = filepath.Join(dir, masterDropIn)
	f.own = filepath.Join(config.DropInDir(h.c.Options.Files()[0]), ownDropIn)
	f.texts = map[string]string{f.master: dropInHead + string(options), f.own: dropInHead + ownOption}
	return f, nil
}

// missing is what the two configurations lack.
type missing struct {
	master, own bool // what a drop-in sets
	edits       []unshare.Edit
}

func (m missing) anything() bool { return m.master || m.own || len(m.edits) > 0 }

// findMissing reads what the two configurations do not say yet or, with back, still say.
func (h *Host) findMissing(p unshare.Plan, back bool) (m missing) {
	options := h.c.Options
	if c, err := config.Read(options.Files()[0]); err != nil && c == nil || c.Cluster.IsolatedFilesystem == back {
		m.own = true
	}
	c, err := localmaster.LoadConfig(options.Salt.Config, h.c.Master().Version)
	if err != nil {
		return missing{master: true, own: m.own, edits: p.Edits}
	}
	if pki, ok := p.Options["pki_dir"].(string); ok && (c.PkiDir == pki) == back {
		m.master = true
	}
	for _, option := range []string{localmaster.FileRoots, localmaster.PillarRoots} {
		if want, ok := p.Options[option].(map[string]any); ok && sameRoots(c.Roots(option), want) == back {
			m.master = true
		}
	}
	for _, e := range p.Edits {
		have := slices.Concat(slices.Collect(maps.Values(c.Roots(e.Option)))...)
		from, to := e.From, e.To
		if back {
			from, to = to, from
		}
		if slices.Contains(have, from) || !slices.Contains(have, to) {
			m.edits = append(m.edits, unshare.Edit{File: e.File, Option: e.Option, From: from, To: to})
		}
	}
	return m
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

// configure makes the two configurations name the copies, and waits for the operator where it cannot.
func (h *Host) configure(ctx context.Context, p unshare.Plan) error {
	files, err := h.renderDropIns(p)
	if err != nil {
		return err
	}
	if err := h.changeState(func(st *unshare.State) { st.Files = []string{files.master, files.own} }); err != nil {
		return err
	}
	for _, t := range p.Trees {
		if t.Link != "" {
			if err := unshare.Exchange(t); err != nil {
				return err
			}
		}
	}
	failed := map[string]error{}
	for _, path := range []string{files.master, files.own} {
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		failed[path] = unshare.Install(path, []byte(files.texts[path]))
	}
	return h.awaitOperator(ctx, func() *adminapi.MigrateByHand {
		lacks := h.findMissing(p, false)
		if !lacks.anything() {
			return nil
		}
		request := &adminapi.MigrateByHand{Why: "the configuration is not as required"}
		var why []string
		for _, f := range []struct {
			path  string
			lacks bool
		}{{files.master, lacks.master}, {files.own, lacks.own}} {
			switch {
			case f.lacks && failed[f.path] != nil:
				why = append(why, fmt.Sprintf("saltclusterd may not write its configuration: %v", failed[f.path]))
				request.Commands = append(request.Commands,
					fmt.Sprintf("cat > %s <<'END'\n%sEND", f.path, files.texts[f.path]))
			case f.lacks:
				why = append(why, f.path+" has no effect; another file overrides it")
			}
		}
		if len(why) > 0 {
			request.Why = strings.Join(why, "; ")
		}
		for _, e := range lacks.edits {
			request.Commands = append(request.Commands, editCommand(e))
		}
		return request
	})
}

// unconfigure takes back what configure has done.
func (h *Host) unconfigure(ctx context.Context, st unshare.State) error {
	for _, t := range st.Plan.Trees {
		if t.Link == "" {
			continue
		}
		if _, err := os.Lstat(t.To); errors.Is(err, fs.ErrNotExist) {
			if err := os.Symlink(t.From, t.To); err != nil {
				return fmt.Errorf("link to the share: %w", err)
			}
		}
		if err := unshare.Restore(t); err != nil {
			return err
		}
	}
	for _, f := range st.Files {
		_ = os.Remove(f) // the operator is asked for what stays
	}
	return h.awaitOperator(ctx, func() *adminapi.MigrateByHand {
		lacks := h.findMissing(*st.Plan, true)
		if !lacks.anything() {
			return nil
		}
		request := &adminapi.MigrateByHand{Why: "the configuration still names the copies"}
		for _, f := range st.Files {
			if _, err := os.Lstat(f); err == nil {
				request.Commands = append(request.Commands, "rm "+f)
			}
		}
		for _, e := range lacks.edits {
			request.Commands = append(request.Commands, editCommand(e))
		}
		return request
	})
}

// awaitOperator waits until there is nothing left that the operator has to do.
func (h *Host) awaitOperator(ctx context.Context, left func() *adminapi.MigrateByHand) error {
	defer h.setByHand(nil)
	for {
		request := left()
		if request == nil {
			return nil
		}
		h.setByHand(request)
		if !backoff.Sleep(ctx, operatorPoll) {
			return context.Cause(ctx)
		}
	}
}
