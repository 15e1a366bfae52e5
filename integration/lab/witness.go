package lab

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"
)

// NewWitness lays out a saltclusterd that votes and does nothing else. There is no Salt on its host, nor a
// configuration of one.
func (h *Host) NewWitness(over ...Settings) (*Daemon, error) {
	bin := filepath.Join(h.lab.opts.Bin, "saltclusterd")
	if _, err := os.Stat(bin); err != nil {
		return nil, fmt.Errorf("saltclusterd is not built, run 'make build': %w", err)
	}
	d := &Daemon{
		ConfigPath: filepath.Join(h.dir, "saltclusterd"), Socket: filepath.Join(h.dir, "run/admin.sock"),
		StateDir: filepath.Join(h.dir, "var/lib/saltclusterd"), host: h,
	}
	for _, dir := range []string{filepath.Dir(d.Socket), d.StateDir} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return nil, fmt.Errorf("lay out a witness: %w", err)
		}
	}
	all := Settings{
		"id": h.Name, "cluster_witness": true, "cluster_id": "lab", "cluster_secret": Secret, "cluster_advertise": h.Addr,
		"cluster_interface": h.Addr, "state_dir": d.StateDir, "run_dir": filepath.Dir(d.Socket), "admin_socket": d.Socket,
		"health_listen": net.JoinHostPort(h.Addr, "4580"),
	}
	for _, s := range over {
		for k, v := range s {
			all[k] = v
		}
	}
	raw, err := yaml.Marshal(map[string]any(all))
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", d.ConfigPath, err)
	}
	if err := os.WriteFile(d.ConfigPath, raw, 0o600); err != nil { // it holds the secret
		return nil, fmt.Errorf("write %s: %w", d.ConfigPath, err)
	}
	d.Process = h.NewProcess(Spec{
		Name: "saltclusterd", Argv: []string{bin, "--config", d.ConfigPath}, Grace: 60 * time.Second, Ready: d.listening,
	})
	return d, nil
}
