package localmaster

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// applyID gives opts["id"] its default: the cached minion id or the host's name, and "_master".
func (a *applier) applyID() error {
	isIP, generated := false, false
	if !pyTrue(a.opts["id"]) {
		id, ip, err := a.guessID()
		if err != nil {
			return err
		}
		a.opts["id"], isIP, generated = id, ip, true
	}
	id := pyStr(a.opts["id"])
	if domain, ok := a.opts["append_domain"].(string); ok && !isIP {
		if !strings.HasSuffix(id, domain) && !strings.HasSuffix(id, ".") {
			id += "." + domain
		}
	}
	if generated {
		id += "_master"
	}
	a.opts["id"] = id
	return nil
}

// guessID is salt.config.get_id.
func (a *applier) guessID() (id string, isIP bool, err error) {
	root, _ := a.opts["root_dir"].(string)
	if caching, ok := a.opts["minion_id_caching"]; !ok || pyTrue(caching) {
		if id := cachedMinionID(filepath.Join(root, "etc/salt/minion_id")); id != "" {
			return id, false, nil
		}
	}
	if pyTrue(a.opts["id_function"]) {
		return "", false, fmt.Errorf("option id_function runs Python code: set id in the master's configuration instead")
	}
	id = generateMinionID()
	if pyTrue(a.opts["minion_id_lowercase"]) {
		id = strings.ToLower(id)
	}
	id = removeDomain(id, a.opts["minion_id_remove_domain"])
	addr, err := netip.ParseAddr(id)
	return id, err == nil && addr.Is4(), nil
}

func cachedMinionID(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReaderSize(f, 4096).ReadString('\n')
	id := strings.TrimPrefix(strings.TrimSpace(line), "\ufeff")
	if id == "localhost" {
		return ""
	}
	return id
}

func removeDomain(id string, remove any) string {
	switch d := remove.(type) {
	case bool:
		if d {
			id, _, _ = strings.Cut(id, ".")
		}
	case string:
		if suffix := "." + d; d != "" && len(id) >= len(suffix) && strings.EqualFold(id[len(id)-len(suffix):], suffix) {
			id = id[:len(id)-len(suffix)]
		}
	}
	return id
}

// localName matches names that do not identify a host (salt.utils.network._generate_minion_id, DistinctList).
var localName = regexp.MustCompile(`^(?:localhost.*|ip6-.*|127[.]\d|0\.0\.0\.0|::1.*|ipv6-.*|fe00::.*|fe02::.*|1.0.0.*.ip6.arpa)`)

// generateMinionID is salt.utils.network.generate_minion_id: the first usable name of the host.
func generateMinionID() string {
	host, _ := os.Hostname()
	candidates := []string{lookupFQDN(host), host}
	for _, file := range []string{"/etc/hostname", "/etc/nodename", "/etc/hosts"} {
		candidates = append(candidates, namesIn(file)...)
	}
	for _, name := range append(candidates, hostAddrs()...) {
		if name != "" && !localName.MatchString(name) {
			return name
		}
	}
	return "localhost"
}

// lookupFQDN is socket.getfqdn: the first name with a dot among those of the host's address.
func lookupFQDN(host string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil || len(addrs) == 0 {
		return host
	}
	names, err := net.DefaultResolver.LookupAddr(ctx, addrs[0])
	if err != nil || len(names) == 0 {
		return host
	}
	for _, name := range names {
		if name = strings.TrimSuffix(name, "."); strings.Contains(name, ".") {
			return name
		}
	}
	return strings.TrimSuffix(names[0], ".")
}

func namesIn(path string) (names []string) {
	text, err := readLimited(path)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		words := strings.Fields(line)
		if len(words) == 1 || len(words) > 0 && (strings.HasPrefix(words[0], "127.") || words[0] == "::1") {
			names = append(names, words...)
		}
	}
	return names
}

func hostAddrs() (out []string) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
			out = append(out, p.Addr().String())
		}
	}
	return out
}
