package daemon

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
)

// localAddrs lists this host's addresses; none when the system does not tell.
func localAddrs() []netip.Addr {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []netip.Addr
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr().Unmap())
		}
	}
	return out
}

// advertise returns the address under which the others reach this node.
func (d *Daemon) advertise() (netip.AddrPort, error) {
	text := d.cfg.PeerAdvertise(localAddrs())
	if text == "" {
		return netip.AddrPort{}, fmt.Errorf("this host has no address that others can reach: set the option cluster_advertise")
	}
	addr, err := node.ParseAddr(text)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("option cluster_advertise: %w", err)
	}
	return addr, nil
}

// restartLimit is how long the command may take that restarts the salt-master.
const restartLimit = 2 * time.Minute

// restartMaster runs the operator's command that makes the local master read its new identity.
func (d *Daemon) restartMaster(ctx context.Context, p admin.Progress) error {
	args := d.cfg.Salt.RestartCommand
	if len(args) == 0 {
		return nil
	}
	p("master", "restarting the salt-master: "+strings.Join(args, " "))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restartLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("master_restart_command failed: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
