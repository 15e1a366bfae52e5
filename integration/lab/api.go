package lab

import (
	"context"
	"net"
	"strconv"
)

// NewAPI lays out a stock salt-api beside the master, whose settings say which ports it has.
func (m *Master) NewAPI(ports ...int) (*Process, error) {
	h := m.Host()
	path, err := h.lab.saltTool(m.Version, "salt-api")
	if err != nil {
		return nil, err
	}
	return h.NewProcess(Spec{
		Name: "api", Argv: []string{path, "-c", m.ConfigDir, "-l", "warning"}, Env: m.Env(),
		Ready: func(ctx context.Context) error {
			for _, port := range ports {
				if err := h.Accepts(ctx, net.JoinHostPort(h.Addr, strconv.Itoa(port))); err != nil {
					return err
				}
			}
			return nil
		},
	}), nil
}
