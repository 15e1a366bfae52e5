package doctor

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Listener is a listening TCP socket of this host.
type Listener struct {
	Addr    netip.AddrPort
	Process string // its name and pid; empty: not ours to see
}

// maxTable bounds what is read of /proc/net/tcp.
const maxTable = 64 << 20

// Listeners reads who listens on the given ports. proc is /proc.
func Listeners(proc string, ports ...int) ([]Listener, error) {
	inodes := map[string]Listener{}
	err := eachTable(proc, func(r io.Reader) { readSockets(r, ports, inodes) })
	if err != nil {
		return nil, err
	}
	findOwners(proc, inodes)
	out := make([]Listener, 0, len(inodes))
	for _, l := range inodes {
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b Listener) int { return a.Addr.Compare(b.Addr) })
	return out, nil
}

// Connected lists who is connected to a port of this host, by address; one that has several connections is there as
// often.
func Connected(proc string, port int) (from []netip.Addr, err error) {
	err = eachTable(proc, func(r io.Reader) {
		for lines := bufio.NewScanner(r); lines.Scan(); {
			f := strings.Fields(lines.Text())
			if len(f) < 10 || f[3] != "01" {
				continue
			}
			own, ok := kernelAddr(f[1])
			remote, known := kernelAddr(f[2])
			if ok && known && int(own.Port()) == port {
				from = append(from, remote.Addr())
			}
		}
	})
	return from, err
}

// eachTable reads the kernel's tables of TCP sockets.
func eachTable(proc string, read func(io.Reader)) error {
	for _, name := range []string{"tcp", "tcp6"} {
		f, err := os.Open(filepath.Join(proc, "net", name))
		if err != nil {
			if name == "tcp6" {
				continue // a kernel without IPv6
			}
			return err
		}
		read(io.LimitReader(f, maxTable))
		f.Close()
	}
	return nil
}

// readSockets takes the listening sockets out of one table (state 0A), by inode.
func readSockets(r io.Reader, ports []int, into map[string]Listener) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 10 || f[3] != "0A" {
			continue
		}
		addr, ok := kernelAddr(f[1])
		if ok && slices.Contains(ports, int(addr.Port())) {
			into[f[9]] = Listener{Addr: addr}
		}
	}
}

// kernelAddr reads 0100007F:1199 (127.0.0.1:4505): words in the machine's order, which is little-endian where we run.
func kernelAddr(s string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(s, ":")
	raw, err := hex.DecodeString(host)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if err != nil || err2 != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		slices.Reverse(raw[i : i+4])
	}
	a, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(a.Unmap(), uint16(n)), ok
}

// findOwners finds the processes of sockets, as far as we may see them.
func findOwners(proc string, sockets map[string]Listener) {
	links, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "fd", "*"))
	if err != nil {
		return
	}
	for _, link := range links {
		target, err := os.Readlink(link)
		inode := strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")
		l, wanted := sockets[inode]
		if err != nil || !wanted || l.Process != "" {
			continue
		}
		dir := filepath.Dir(filepath.Dir(link))
		name, err := programName(dir)
		if err != nil {
			continue
		}
		l.Process = fmt.Sprintf("%s (pid %s)", name, filepath.Base(dir))
		sockets[inode] = l
	}
}

// programName is what a process calls itself. A salt-master's title begins with the path of its Python, of which the
// kernel keeps 15 bytes.
func programName(dir string) (string, error) {
	comm, err := os.ReadFile(filepath.Join(dir, "comm"))
	if err != nil {
		return "", err
	}
	if line, err := os.ReadFile(filepath.Join(dir, "cmdline")); err == nil {
		for _, word := range strings.FieldsFunc(string(line), func(r rune) bool { return r == 0 || r == ' ' }) {
			if filepath.Base(word) == "salt-master" {
				return "salt-master", nil
			}
		}
	}
	return strings.TrimSpace(string(comm)), nil
}
