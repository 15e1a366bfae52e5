package lab

import "path/filepath"

// Syndic is a stock salt-syndic with the stock master below it, on a host of its own: to the masters above it is a
// minion of the host's name.
type Syndic struct {
	*Process
	ID     string
	Master *Master
}

// NewSyndic lays out a master with its syndic, whose master above is at the address given.
func (h *Host) NewSyndic(version, above string, over ...Settings) (*Syndic, error) {
	m, err := h.NewMaster(version, h.Addr, append([]Settings{{"syndic_master": above}}, over...)...)
	if err != nil {
		return nil, err
	}
	return m.NewSyndic()
}

// NewSyndic lays out a syndic beside a master that has syndic_master.
func (m *Master) NewSyndic() (*Syndic, error) {
	h := m.Host()
	path, err := h.lab.saltTool(m.Version, "salt-syndic")
	if err != nil {
		return nil, err
	}
	own := Settings{ // it reads both files
		"id": h.Name, "user": currentUser(), "root_dir": h.dir, "acceptance_wait_time": 2, "random_reauth_delay": 3,
		"enable_fqdns_grains": false, "enable_gpu_grains": false,
	}
	if err := writeConfig(filepath.Join(m.ConfigDir, "minion"), own); err != nil {
		return nil, err
	}
	argv := []string{path, "-c", m.ConfigDir, "-l", "warning"}
	return &Syndic{ID: h.Name, Master: m, Process: h.NewProcess(Spec{Name: "syndic", Argv: argv, Env: m.Env()})}, nil
}
