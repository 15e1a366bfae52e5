package doctor

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/hlc"
)

// Bounds of clocks: beyond warnSkew logs do not match, beyond failSkew what expires by the clock (eauth tokens, jobs,
// request_server_ttl) goes wrong.
const (
	warnSkew = time.Second
	failSkew = 10 * time.Second
)

// clockWhy and clockNext are what comes of a clock that is off, and what to do.
const (
	clockWhy = "eauth tokens, keep_jobs and request_server_ttl depend on the clock: tokens expire early (Authentication failure of type " +
		"\"token\"), requests are dropped as expired (Salt request timed out)"
	clockNext = "timedatectl; chronyc tracking; then configure the same time servers on all nodes"
)

// WithoutKnown leaves out the peers that do not answer and that the status reports already: one cause is one finding.
func WithoutKnown(peers []adminapi.CheckupPeer, st adminapi.Status) []adminapi.CheckupPeer {
	away := map[string]bool{}
	for _, m := range st.Members {
		away[m.ID] = m.State == adminapi.StateFailed || m.State == adminapi.StateLeft
	}
	return slices.DeleteFunc(slices.Clone(peers), func(p adminapi.CheckupPeer) bool { return p.Error != "" && away[p.Node] })
}

// Clocks judges how far the clocks of the nodes are from one another: from what most of them agree on, else from that
// of self.
func Clocks(self string, peers []adminapi.CheckupPeer) []Finding {
	const check = "clock"
	var out []Finding
	own := ownSkew(self, peers)
	if own != 0 {
		out = append(out, Finding{
			Check: check, Level: Fail, Where: self, What: "this host's clock is " + formatSkew(own) + ", by the clocks of most nodes",
			Why: clockWhy, Next: "here: " + clockNext,
		})
	}
	for _, p := range peers {
		if p.Error != "" {
			out = append(out, Finding{
				Check: "peers", Level: Fail, Where: p.Node, What: "does not answer on " + p.Address + ": " + p.Error,
				Why:  "its minions use the other nodes; jobs and key changes made there wait. Without a majority, no key can be accepted",
				Next: "on that host: systemctl status saltclusterd; between the hosts: tcp and udp of the peer port (cluster_pool_port) must pass both ways",
			})
			continue
		}
		if p.Skew == nil {
			out = append(out, skip(check, p.Node, "runs a saltclusterd that does not report its time"))
			continue
		}
		skew := own + fromSeconds(*p.Skew)
		doubt := time.Duration(p.RoundTrip * float64(time.Second) / 2)
		f := Finding{Check: check, Level: OK, Where: p.Node,
			What: fmt.Sprintf("is %s, give or take %s", formatSkew(skew), doubt.Round(100*time.Microsecond))}
		switch far := skew.Abs() - doubt; {
		case far > failSkew:
			f.Level = Fail
		case far > warnSkew:
			f.Level = Warn
		}
		if f.Level != OK {
			f.Why, f.Next = clockWhy, "on both hosts: "+clockNext
		}
		out = append(out, f)
	}
	return out
}

// ownSkew is how far this host's clock is ahead of what most clocks agree on, 0 when it is among these or no majority
// agrees.
func ownSkew(self string, peers []adminapi.CheckupPeer) time.Duration {
	offsets := map[node.ID]time.Duration{node.ID(self): 0}
	for _, p := range peers {
		if p.Skew != nil {
			offsets[node.ID(p.Node)] = fromSeconds(*p.Skew)
		}
	}
	off, majority := hlc.Judge(offsets, failSkew)
	for _, o := range off {
		if majority && o.Node == node.ID(self) {
			return o.Ahead
		}
	}
	return 0
}

func fromSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func formatSkew(skew time.Duration) string {
	round := skew.Round(time.Millisecond)
	switch {
	case round > 0:
		return round.String() + " ahead"
	case round < 0:
		return (-round).String() + " behind"
	}
	return "at the same time"
}

// supported are the releases of Salt that saltclusterd knows.
var supported = []string{"3006", "3007", "3008"}

// Versions judges the pairs of Salt and saltclusterd in the cluster.
func Versions(members []adminapi.Member) []Finding {
	const check = "versions"
	var out []Finding
	ours, salts := map[string][]string{}, map[string][]string{}
	for _, m := range members {
		if m.Version != "" {
			ours[m.Version] = append(ours[m.Version], m.ID)
		}
		major, _, _ := strings.Cut(m.SaltVersion, ".")
		switch {
		case m.SaltVersion == "":
			continue
		case !slices.Contains(supported, major):
			out = append(out, Finding{Check: check, Level: Fail, Where: m.ID,
				What: "runs Salt " + m.SaltVersion + ", which saltclusterd does not know",
				Why:  "formats on the wire and on disk may differ", Next: "install 3006, 3007 or 3008 there"})
		}
		salts[major] = append(salts[major], m.ID)
	}
	if len(ours) > 1 {
		out = append(out, Finding{Check: check, Level: Warn,
			What: "nodes run different versions of saltclusterd: " + versionList(ours),
			Why:  "new features stay off until all nodes have them", Next: "install the newer one everywhere, then on each: saltclusterctl upgrade"})
	}
	if len(salts) > 1 {
		out = append(out, Finding{Check: check, Level: OK,
			What: "masters of several Salt releases work together: " + versionList(salts)})
	}
	if len(out) == 0 {
		out = append(out, ok(check, "", "all nodes run the same versions"))
	}
	return out
}

func versionList(m map[string][]string) string {
	parts := make([]string, 0, len(m))
	for v, ids := range m {
		slices.Sort(ids)
		parts = append(parts, v+" ("+strings.Join(ids, " ")+")")
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// Problems takes over what status says.
func Problems(st adminapi.Status) []Finding {
	var out []Finding
	for _, p := range st.Problems {
		level := Warn
		if p.Level == adminapi.LevelFail {
			level = Fail
		}
		out = append(out, Finding{Check: "status", Level: level, Where: p.Node, What: p.Message, Next: p.Hint})
	}
	if len(out) == 0 {
		out = append(out, ok("status", "", "saltclusterd sees no problem"))
	}
	return out
}

// Names looks whether names resolve, and to the same addresses each time they are asked for.
func Names(ctx context.Context, names []string) []Finding {
	const check = "dns"
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var out []Finding
	for _, name := range names {
		host := name
		if h, _, err := net.SplitHostPort(name); err == nil {
			host = h
		}
		if _, err := netip.ParseAddr(host); err == nil {
			continue
		}
		addrs, err := net.DefaultResolver.LookupHost(ctx, host)
		switch {
		case err != nil:
			out = append(out, Finding{Check: check, Level: Fail, Where: host, What: "does not resolve: " + wording.Cause(err),
				Why:  "this node cannot find its peers at its first start; minions that use such a name log DNS lookup or connection check of '" + host + "' failed",
				Next: "getent hosts " + host + "; repair DNS or /etc/hosts, or write addresses"})
		case slices.ContainsFunc(addrs, loopbackAddr):
			out = append(out, Finding{Check: check, Level: Fail, Where: host,
				What: "resolves to " + strings.Join(addrs, " ") + ", which is this host itself",
				Why:  "Debian maps the host's own name to 127.0.1.1 in /etc/hosts: connections to it never leave the host", Next: "write its real address into /etc/hosts"})
		default:
			out = append(out, ok(check, host, "is "+strings.Join(addrs, " ")))
		}
	}
	return out
}

func loopbackAddr(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.IsLoopback()
}

// TargetsOf are the nodes as minions see them.
func TargetsOf(members []adminapi.Member, publish, ret int) []Target {
	var out []Target
	for _, m := range members {
		host, _, err := net.SplitHostPort(m.Address)
		if err != nil || m.Role == adminapi.RoleWitness || m.Draining || m.State != adminapi.StateAlive {
			continue
		}
		out = append(out, Target{Name: m.ID, Host: host, PublishPort: publish, RetPort: ret})
	}
	return out
}

// ParseTarget reads HOST or HOST:PUBLISH_PORT:RET_PORT, or [HOST] of IPv6.
func ParseTarget(s string, publish, ret int) (Target, error) {
	host, rest, ported := s, "", false
	if strings.HasPrefix(s, "[") {
		host, rest, ported = strings.Cut(s[1:], "]")
		rest = strings.TrimPrefix(rest, ":")
		ported = ported && rest != ""
	} else if strings.Count(s, ":") == 2 {
		host, rest, ported = strings.Cut(s, ":")
	}
	t := Target{Name: "minions'", Host: host, PublishPort: publish, RetPort: ret}
	if host == "" {
		return t, fmt.Errorf("%q names no host", s)
	}
	if !ported {
		return t, nil
	}
	p, r, _ := strings.Cut(rest, ":")
	var err, err2 error
	t.PublishPort, err = strconv.Atoi(p)
	t.RetPort, err2 = strconv.Atoi(r)
	if err != nil || err2 != nil {
		return t, fmt.Errorf("%q is not HOST:PUBLISH_PORT:RET_PORT", s)
	}
	return t, nil
}
