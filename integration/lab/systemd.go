package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Systemd is a real systemd, as a user's manager, in namespaces of its own for processes and mounts. It starts one
// service.
type Systemd struct {
	*Process
	Unit string // path of the service's file
	dir  string
	cg   []string
}

// ErrNoSystemd means that this machine has none, or does not let us have one.
var ErrNoSystemd = errors.New("no systemd that can be started here")

const systemdPath = "/lib/systemd/systemd"

// systemdScript is the first process of its namespace. A manager wants to see that the machine was booted with systemd.
// The arguments are cgroups to move to.
const systemdScript = `mount -t tmpfs tmpfs /run/systemd && mkdir /run/systemd/system || exit 1
for cg in "$@"; do echo 0 > "$cg/cgroup.procs" || exit 1; done
` + systemdPath + ` --user --log-target=console --show-status=no & wait $!`

// NewSystemd makes a manager that starts the service given as the text of its file. Its Ready is that of the service.
func (h *Host) NewSystemd(name, unit string, ready func(context.Context) error) (*Systemd, error) {
	for _, tool := range []string{systemdPath, "/usr/bin/systemctl", "/usr/bin/unshare"} {
		if _, err := os.Stat(tool); err != nil || os.Getuid() != 0 {
			return nil, fmt.Errorf("%w: %w", ErrNoSystemd, err)
		}
	}
	s := &Systemd{dir: filepath.Join(h.dir, "systemd")}
	units := filepath.Join(s.dir, "config/systemd/user")
	wants := filepath.Join(units, "default.target.wants")
	s.Unit = filepath.Join(units, name)
	err := errors.Join(os.MkdirAll(filepath.Join(s.dir, "run"), 0o700), os.MkdirAll(wants, 0o755),
		os.WriteFile(s.Unit, []byte(unit), 0o644), os.Symlink(s.Unit, filepath.Join(wants, name)))
	if err == nil {
		s.cg, err = makeCgroups("saltclusterd-lab-" + h.lab.id + "-" + h.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoSystemd, err)
	}
	argv := append([]string{"/usr/bin/unshare", "--fork", "--pid", "--mount", "--mount-proc", "--kill-child", "/bin/sh",
		"-c",
		systemdScript, "systemd"}, s.cg...)
	s.Process = h.NewProcess(Spec{Name: "systemd", Argv: argv, Env: s.Env(), Ready: ready})
	return s, nil
}

// Env makes systemctl find this manager.
func (s *Systemd) Env() []string {
	return []string{
		"XDG_RUNTIME_DIR=" + filepath.Join(s.dir, "run"), "XDG_CONFIG_HOME=" + filepath.Join(s.dir, "config"),
		"HOME=" + s.dir,
	}
}

// Ctl runs systemctl against this manager, in its namespaces: from outside it would be a client without a pid, to which
// a manager does not listen.
func (s *Systemd) Ctl(ctx context.Context, args ...string) (Result, error) {
	pid := strconv.Itoa(s.PID())
	children, err := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
	if err != nil {
		return Result{}, fmt.Errorf("systemd of %s: %w", s.Host().Name, err)
	}
	argv := []string{"/usr/bin/nsenter", "--target", strings.TrimSpace(string(children)), "--pid", "--mount",
		"/usr/bin/systemctl", "--user", "--no-pager"}
	return s.Host().Exec(ctx, s.Env(), append(argv, args...)...)
}

// Show returns properties of the service.
func (s *Systemd) Show(ctx context.Context, names ...string) (map[string]string, error) {
	res, err := s.Ctl(ctx, "show", "--property="+strings.Join(names, ","), filepath.Base(s.Unit))
	if err == nil {
		err = res.Err()
	}
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.Lines(res.Stdout) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		out[name] = value
	}
	return out, nil
}

// Close ends the manager with all it has started, and removes its cgroups.
func (s *Systemd) Close(ctx context.Context) error {
	if err := s.Kill(); err != nil && !errors.Is(err, ErrNotRunning) {
		return err
	}
	return Eventually(ctx, startWithin, "the cgroups of systemd to be empty", func(context.Context) error {
		var errs []error
		for _, cg := range s.cg {
			errs = append(errs, removeCgroup(cg))
		}
		return errors.Join(errs...)
	})
}

// makeCgroups makes a cgroup below ours in the hierarchies that systemd uses.
func makeCgroups(name string) (made []string, err error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		if len(f) < 4 || f[2] != "cgroup2" && !(f[2] == "cgroup" && strings.Contains(f[3], "name=systemd")) {
			continue
		}
		dir := filepath.Join(f[1], ownCgroup(string(own), f[2] == "cgroup2"), name)
		if slices.Contains(made, dir) {
			continue
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			return made, err
		}
		made = append(made, dir)
	}
	if len(made) == 0 {
		return nil, errors.New("no cgroups are mounted")
	}
	return made, nil
}

// ownCgroup is where this process is in the hierarchy of systemd, or the unified one.
func ownCgroup(text string, unified bool) string {
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 && (unified && f[0] == "0" || !unified && f[1] == "name=systemd") {
			return f[2]
		}
	}
	return "/"
}

// removeCgroup removes a cgroup and those below it; they must have no processes.
func removeCgroup(dir string) error {
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, path := range slices.Backward(all) {
		err = errors.Join(err, syscall.Rmdir(path))
	}
	return err
}
