package straced

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Kind is what was done.
type Kind string

// Kinds that are told apart.
const (
	Read    Kind = "read"
	Write   Kind = "write"
	Listen  Kind = "listen"  // a port of ours, or a socket's path
	Connect Kind = "connect" // or a packet that is sent there
	Start   Kind = "start"
)

// Touched is something outside of the program: "/etc/hosts", "tcp 127.0.0.1:4506", "unix /run/x.sock", "netlink"; of
// what is started the path, and its arguments.
type Touched struct {
	Kind Kind
	What string
}

// Options are those of strace whose output Parse reads. The tracer is not the program's parent (-D), so the program
// keeps its process id.
func Options(file string) []string {
	return []string{"-D", "-f", "--seccomp-bpf", "-Y", "-yy", "-s", "256", "-e", "trace=%file,bind,connect,sendto,sendmsg",
		"-e", "signal=none", "-A", "-o", file}
}

var (
	// 1234<name> call(arguments…
	line = regexp.MustCompile(`^(\d+)<([^>]*)> (\w+)\((.*)$`)
	// AT_FDCWD</dir>, "name" or 5</dir>, "name" or "name"
	named   = regexp.MustCompile(`^(?:(?:AT_FDCWD|\d+)<((?:[^>\\]|\\.)*?)>(?:\(deleted\))?, )?("(?:[^"\\]|\\.)*")`)
	address = regexp.MustCompile(`\{sa_family=(AF_\w+)(?:, ([^}]*))?\}`)
	port    = regexp.MustCompile(`sin6?_port=htons\((\d+)\)`)
	ip      = regexp.MustCompile(`inet_(?:addr|pton)\((?:AF_INET6?, )?"([^"]*)"`)
	unix    = regexp.MustCompile(`sun_path=(@?)("(?:[^"\\]|\\.)*")`)
	socket  = regexp.MustCompile(`^\d+<(TCP|UDP)`)
	process = regexp.MustCompile(`^/proc/(\d+)(/.*|$)`)
	opening = regexp.MustCompile(`O_(?:WRONLY|RDWR|CREAT|TRUNC)`)
)

// reading are the calls on a path that change nothing, however they are used.
var reading = map[string]bool{
	"newfstatat": true, "stat": true, "lstat": true, "statx": true, "readlinkat": true, "readlink": true, "access": true,
	"faccessat":  true,
	"faccessat2": true, "statfs": true, "getxattr": true, "lgetxattr": true, "listxattr": true, "llistxattr": true,
	"inotify_add_watch": true,
	"chdir":             true, "getcwd": true, "name_to_handle_at": true,
}

// Parse calls found for everything that the program of that name touched, each thing once. The program's own directory
// below /proc is /proc/self, also when it goes by a number.
func Parse(r io.Reader, program string, found func(Touched)) error {
	seen, own := map[Touched]bool{}, map[string]bool{}
	once := func(k Kind, what string) {
		if m := process.FindStringSubmatch(what); m != nil && own[m[1]] {
			what = "/proc/self" + m[2]
		}
		if t := (Touched{k, what}); !seen[t] {
			seen[t] = true
			found(t)
		}
	}
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		m := line.FindStringSubmatch(in.Text())
		if m == nil || m[2] != program {
			continue // another program's, the end of a call that began above, the end of a thread
		}
		own[m[1]] = true
		if err := parse(m[3], m[4], once); err != nil {
			return fmt.Errorf("read %.200q: %w", in.Text(), err)
		}
	}
	return in.Err()
}

func parse(call, args string, found func(Kind, string)) error {
	switch call {
	case "execve":
		what, err := command(args)
		if err == nil {
			found(Start, what)
		}
		return err
	case "bind", "connect", "sendto", "sendmsg":
		what := peer(args)
		switch {
		case what == "": // no address: of a connection
		case call != "bind", what == "netlink": // where no other process connects to us
			found(Connect, what)
		case !strings.HasSuffix(what, ":0"): // any port: of a connection
			found(Listen, what)
		}
		return nil
	}
	kind := Write
	if reading[call] || strings.HasPrefix(call, "open") && !opening.MatchString(args) {
		kind = Read
	}
	for n := 0; ; n++ {
		m := named.FindStringSubmatch(args)
		if m == nil {
			return nil // calls without a path: of sockets, of a descriptor
		}
		text, err := plain(m[2])
		if err != nil {
			return err
		}
		if call == "symlinkat" || call == "symlink" { // the first is what it says, no path that is touched
			if n == 1 {
				found(kind, join(m[1], text))
			}
		} else {
			found(kind, join(m[1], text))
		}
		if strings.HasPrefix(call, "readlink") { // what follows is what stands in the link
			return nil
		}
		rest, more := strings.CutPrefix(args[len(m[0]):], ", ")
		if !more {
			return nil
		}
		args = rest
	}
}

// join is where a path leads that is named in a directory. The directory may be gone by now.
func join(dir, name string) string {
	if strings.HasPrefix(name, "/") {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

// command is a program's path and its arguments.
func command(args string) (string, error) {
	m := named.FindStringSubmatch(args)
	if m == nil {
		return "", fmt.Errorf("no path of a program")
	}
	words := []string{m[2]}
	if list, ok := strings.CutPrefix(args[len(m[0]):], ", ["); ok {
		for {
			a := named.FindStringSubmatch(list)
			if a == nil {
				break
			}
			words = append(words, a[2])
			list = strings.TrimPrefix(list[len(a[0]):], ", ")
		}
	}
	if len(words) > 1 {
		words = append(words[:1], words[2:]...) // the name it is given
	}
	for i, w := range words {
		text, err := plain(w)
		if err != nil {
			return "", err
		}
		words[i] = text
	}
	return strings.Join(words, " "), nil
}

// peer is the address in a call's arguments.
func peer(args string) string {
	all := address.FindAllStringSubmatch(args, -1)
	if len(all) == 0 {
		return ""
	}
	m := all[len(all)-1] // a payload comes before it
	switch m[1] {
	case "AF_INET", "AF_INET6":
		proto := "tcp"
		if s := socket.FindStringSubmatch(args); s != nil {
			proto = strings.ToLower(s[1])
		}
		p, a := port.FindStringSubmatch(m[2]), ip.FindStringSubmatch(m[2])
		if p == nil || a == nil {
			return ""
		}
		if strings.Contains(a[1], ":") {
			a[1] = "[" + a[1] + "]"
		}
		return proto + " " + a[1] + ":" + p[1]
	case "AF_UNIX":
		u := unix.FindStringSubmatch(m[2])
		if u == nil {
			return ""
		}
		name, err := plain(u[2])
		if err != nil {
			return ""
		}
		return "unix " + u[1] + name
	default:
		return strings.ToLower(strings.TrimPrefix(m[1], "AF_"))
	}
}

// plain undoes strace's way to write a string, which is C's.
func plain(quoted string) (string, error) {
	if !strings.Contains(quoted, `\`) {
		return quoted[1 : len(quoted)-1], nil
	}
	var b strings.Builder
	for s := quoted[1 : len(quoted)-1]; s != ""; {
		if s[0] == '\\' && len(s) > 1 && s[1] >= '0' && s[1] <= '7' { // one to three digits, Go wants three
			n := 1
			for n < 3 && n+1 < len(s) && s[n+1] >= '0' && s[n+1] <= '7' {
				n++
			}
			v, err := strconv.ParseUint(s[1:n+1], 8, 8)
			if err != nil {
				return "", err
			}
			b.WriteByte(byte(v))
			s = s[n+1:]
			continue
		}
		r, multi, tail, err := strconv.UnquoteChar(s, '"')
		if err != nil {
			return "", err
		}
		if multi {
			b.WriteRune(r)
		} else {
			b.WriteByte(byte(r))
		}
		s = tail
	}
	return b.String(), nil
}
