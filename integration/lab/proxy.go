package lab

import "path/filepath"

// Proxy is a stock salt-proxy, which stands for devices that run no minion. What it controls is in its pillar. A
// deltaproxy stands for many, each with an id of its own; all ids have the same key.
type Proxy struct {
	*Process
	Salt
	ID string
}

// NewProxy lays out a proxy that knows one master address.
func (h *Host) NewProxy(version, id, master string, over ...Settings) (*Proxy, error) {
	path, err := h.lab.saltTool(version, "salt-proxy")
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(h.dir, id)
	p := &Proxy{ID: id, Salt: Salt{Version: version, ConfigDir: filepath.Join(dir, "etc/salt"), host: h}}
	base := Settings{
		"user": currentUser(), "root_dir": dir, "master": master, "acceptance_wait_time": 2, "random_reauth_delay": 3,
		"pidfile": filepath.Join(dir, "proxy.pid"), "multiprocessing": true,
		"enable_fqdns_grains": false, "enable_gpu_grains": false,
	}
	if err := writeConfig(filepath.Join(p.ConfigDir, "proxy"), base, over...); err != nil {
		return nil, err
	}
	argv := []string{path, "-c", p.ConfigDir, "-l", "warning", "--proxyid=" + id}
	p.Process = h.NewProcess(Spec{Name: id, Argv: argv, Env: p.Env()})
	return p, nil
}
