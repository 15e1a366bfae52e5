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
	path, err := h.lab.saltTool(version, "salt-syndic")
	if err != nil {
		return nil, err
	}
	s := &Syndic{ID: h.Name}
	if s.Master, err = h.NewMaster(version, h.Addr, append([]Settings{{"syndic_master": above}}, over...)...); err != nil {
		return nil, err
	}
	own := Settings{ // it reads both files
		"id": h.Name, "user": currentUser(), "root_dir": h.dir, "acceptance_wait_time": 2, "random_reauth_delay": 3,
		"enable_fqdns_grains": false, "enable_gpu_grains": false,
	}
	if err := writeConfig(filepath.Join(s.Master.ConfigDir, "minion"), own); err != nil {
		return nil, err
	}
	argv := []string{path, "-c", s.Master.ConfigDir, "-l", "warning"}
	s.Process = h.NewProcess(Spec{Name: "syndic", Argv: argv, Env: s.Master.Env()})
	return s, nil
}
