package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Place tells another program how to run a command where a host or a minion is.
type Place struct {
	PID int      `json:"pid"` // a process whose namespaces to enter; 0: none, it is this machine
	Env []string `json:"env"`
	Dir string   `json:"dir"`
}

// Anchor starts a process on the host that does nothing: as long as it lives, nsenter(1) finds the host by its id.
func (h *Host) Anchor(ctx context.Context) (*Process, error) {
	p := h.NewProcess(Spec{Name: "anchor", Argv: []string{"/bin/sleep", "infinity"}})
	if err := p.Start(ctx); err != nil {
		return nil, fmt.Errorf("anchor %s: %w", h.Name, err)
	}
	return p, nil
}

// Place of the host, with what the given configuration needs in the environment; anchor may be nil without namespaces.
func (h *Host) Place(anchor *Process, extra ...string) Place {
	p := Place{Env: mergeEnv(h.environ(), extra...), Dir: h.dir}
	if h.ns != "" && anchor != nil {
		p.PID = anchor.PID()
	}
	for i, kv := range p.Env { // our own tools are at hand there, too
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			p.Env[i] = "PATH=" + h.lab.opts.Bin + ":" + path
		}
	}
	return p
}

// Place of a node: its Salt's commands and saltclusterctl find their configuration there.
func (n *Node) Place(anchor *Process) Place {
	return n.Host.Place(anchor, append(n.Master.Env(), n.Daemon.Env()...)...)
}

// ControlEnv names a running demo's control socket for bin/lab, when there is more than one demo.
const ControlEnv = "SALTCLUSTER_DEMO"

// ControlSocket is where a user's demo listens for bin/lab unless ControlEnv says otherwise.
func ControlSocket() string {
	if path := os.Getenv(ControlEnv); path != "" {
		return path
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("saltcluster-demo-%d.sock", os.Getuid()))
}
