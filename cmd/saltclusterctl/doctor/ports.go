package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Ports is what a node should listen on.
type Ports struct {
	Publish, Ret int      // of minions
	Ours         []string // addresses that saltclusterd says it has bound for them; nil: it does not run, or not yet
	Interface    []string // what the option names; nil: every address of this host
	Witness      bool
	Down         bool // saltclusterd does not run, which is a finding of its own
}

// JudgePorts compares who listens with who should.
func JudgePorts(p Ports, have []Listener) []Finding {
	if p.Witness {
		return nil
	}
	var out []Finding
	loopback := map[int]bool{}
	for _, l := range have {
		port := int(l.Addr.Port())
		if port != p.Publish && port != p.Ret {
			continue
		}
		ours := slices.Contains(p.Ours, l.Addr.String()) || strings.HasPrefix(l.Process, "saltclusterd ")
		switch {
		case ours, p.isOnOtherAddress(l):
		case l.Addr.Addr().IsUnspecified():
			out = append(out, Finding{
				Check: "ports", Level: Fail, Where: l.Addr.String(), What: processName(l) + " listens on all addresses of this host",
				Why:  "saltclusterd cannot open the port, and minions connect to this master directly, bypassing the cluster",
				Next: "put 'interface: 127.0.0.1' into /etc/salt/master.d/zz-saltclusterd.conf, then: systemctl restart salt-master saltclusterd",
			})
		case l.Addr.Addr().IsLoopback():
			loopback[port] = true
		default:
			out = append(out, Finding{
				Check: "ports", Level: Fail, Where: l.Addr.String(), What: processName(l) + " listens on a port that saltclusterd needs",
				Why:  "minions that connect to this address do not reach the cluster",
				Next: "move it: the salt-master with 'interface: 127.0.0.1' in /etc/salt/master.d/zz-saltclusterd.conf; if a load balancer has its own address on this host, list the other addresses in saltclusterd's option interface. Then restart both",
			})
		}
	}
	for _, port := range []int{p.Publish, p.Ret} {
		if !loopback[port] && len(out) == 0 {
			out = append(out, Finding{
				Check: "ports", Level: Fail, Where: fmt.Sprintf("127.0.0.1:%d", port), What: "the salt-master does not listen",
				Why:  "this node sends requests to the other nodes' masters, and nothing can be published here",
				Next: "systemctl start salt-master; if it does not start: journalctl -u salt-master -n 50, and /var/log/salt/master",
			})
			break
		}
	}
	if p.Down && len(out) == 0 {
		return nil
	}
	if p.Ours == nil && len(out) == 0 {
		out = append(out, Finding{
			Check: "ports", Level: Warn, What: fmt.Sprintf("saltclusterd has not opened %d and %d", p.Publish, p.Ret),
			Why:  "no minion can use this node: Salt request timed out, Minion did not return",
			Next: "saltclusterctl status says what it waits for",
		})
	}
	if len(out) == 0 {
		out = append(out, ok("ports", "", fmt.Sprintf("%s for minions, 127.0.0.1 for the salt-master",
			strings.Join(p.Ours, " "))))
	}
	return out
}

// isOnOtherAddress reports whether l is on an address that the option interface leaves to other programs.
func (p Ports) isOnOtherAddress(l Listener) bool {
	a := l.Addr.Addr()
	return len(p.Interface) > 0 && !a.IsUnspecified() && !a.IsLoopback() &&
		!slices.ContainsFunc(p.Interface, func(s string) bool {
			named, err := netip.ParseAddr(s)
			return err != nil || named.Unmap().WithZone("") == a.Unmap().WithZone("")
		})
}

func processName(l Listener) string {
	if l.Process == "" {
		return "a process (root may see which: ss -ltnp)"
	}
	return l.Process
}
