package masterlink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/localmaster"
)

// restartTimeout is how long the command may take that restarts the salt-master.
const restartTimeout = 2 * time.Minute

// ReadConfig reads the configuration of the stock master beside this node, as Salt of the installed version reads it.
func ReadConfig(ctx context.Context, salt config.Salt) (*localmaster.Config, error) {
	v, err := localmaster.DetectVersion(ctx, salt.MasterCommand)
	if err != nil {
		return nil, fmt.Errorf("ask %s for its version (option salt_master_command): %w", salt.MasterCommand, err)
	}
	if !v.Supported() {
		return nil, fmt.Errorf("salt %s is not supported: 3006, 3007 and 3008 are", v)
	}
	master, err := localmaster.LoadConfig(salt.Config, v)
	if errors.Is(err, fs.ErrPermission) {
		return nil, unreadable(err)
	} else if err != nil {
		return nil, fmt.Errorf("read the master's configuration (option salt_config): %w", err)
	}
	return master, nil
}

// CheckPorts says whether the master and saltclusterd want the same ports.
func CheckPorts(options *config.Config, master *localmaster.Config) error {
	addr, ok := master.InterfaceAddr()
	if !ok {
		return nil
	}
	pub, req := options.EdgeAddresses(membership.LocalAddrs())
	listens := config.Listens{Interface: addr, PublishPort: master.PublishPort, RetPort: master.RetPort}
	return options.ValidateMaster(listens, append(pub, req...)...)
}

// Restart runs the operator's command that makes the local master read its files anew; without one it does nothing.
func Restart(ctx context.Context, command []string, p admin.Progress) error {
	if len(command) == 0 {
		return nil
	}
	p("master", "restarting the salt-master: "+strings.Join(command, " "))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restartTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("master_restart_command failed: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
