package lab

import (
	"context"
	"path/filepath"
)

// Minion is a stock salt-minion. Many of them share a host, each with a root directory of its own.
type Minion struct {
	*Process
	Salt
	ID  string
	dir string
	// jobs is its log file, which tells of each job: what it prints are warnings only.
	jobs string
}

// NewMinion lays out a stock minion that knows one master address.
func (h *Host) NewMinion(version, id, master string, over ...Settings) (*Minion, error) {
	path, err := h.lab.saltTool(version, "salt-minion")
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(h.dir, id)
	m := &Minion{ID: id, dir: dir, jobs: filepath.Join(dir, "var/log/salt/minion"),
		Salt: Salt{Version: version, ConfigDir: filepath.Join(dir, "etc/salt"), host: h}}
	base := Settings{
		"user": currentUser(), "root_dir": dir, "id": id, "master": master,
		// A pending minion asks every 2 s instead of every 10: waiting for a newly accepted key is most of a lab's life.
		"acceptance_wait_time": 2, "random_reauth_delay": 3,
		// No DNS and no graphics cards in a namespace; looking for them takes seconds per start.
		"enable_fqdns_grains": false, "enable_gpu_grains": false,
		"log_level_logfile": "info",
		"grains":            map[string]any{"lab_dir": m.StateDir(), "lab_version": version[:4]},
	}
	if err := writeConfig(filepath.Join(m.ConfigDir, "minion"), base, over...); err != nil {
		return nil, err
	}
	m.Process = h.NewProcess(Spec{Name: id, Argv: []string{path, "-c", m.ConfigDir, "-l", "warning"}, Env: m.Env()})
	return m, nil
}

// Host is where the minion runs.
func (m *Minion) Host() *Host { return m.Process.Host() }

// Doings tells what the minion was asked to do, at last, and what its processes do now: for a test that lacks an
// answer.
func (m *Minion) Doings(lines int) string {
	return m.Tree() + tail(m.jobs, lines, m.ID+"| ") + "\n"
}

// StateDir is where the demo's states put their files on this minion (grain lab_dir).
func (m *Minion) StateDir() string { return filepath.Join(m.dir, "demo") }

// InfoPath is its log file with messages of level info.
func (m *Minion) InfoPath() string { return m.jobs }

// RunsPath returns the file that it has while it runs a job: the publication that it got.
func (m *Minion) RunsPath(jid string) string {
	return filepath.Join(m.dir, "var/cache/salt/minion/proc", jid)
}

// PKIDir is where this minion keeps its keys and the master's.
func (m *Minion) PKIDir() string { return filepath.Join(m.dir, "etc/salt/pki/minion") }

// Call runs salt-call and returns what the function returned.
func (m *Minion) Call(ctx context.Context, fun string, args ...string) (any, error) {
	var out struct{ Local any }
	_, err := m.runJSON(ctx, &out, "salt-call", append([]string{fun}, args...)...)
	return out.Local, err
}
