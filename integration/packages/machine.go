package packages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"saltclusterd/backoff"
)

// machine is a Debian in namespaces of its own. What happens in it is gone with it.
type machine struct {
	dir    string // its directory here
	root   string // its root directory, as seen from its mount namespace
	base   string
	binds  map[string]string // directories of this host, read-only: path there, path here
	addr   string            // empty: it has a wire of its own, see link
	cgroup string

	outer   *exec.Cmd
	console bytes.Buffer
	pid     int // of its first process, here
}

// bootScript makes the file systems and starts systemd as the first process. Everything it mounts ends with its
// namespace; what belongs to the kernel of this host can only be read.
const bootScript = `set -e
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$BASE,upperdir=$DIR/upper,workdir=$DIR/work" "$ROOT"
for bind in $BINDS; do
	mkdir -p "$ROOT${bind#*=}"
	mount --bind "${bind%%=*}" "$ROOT${bind#*=}"
	mount -o remount,bind,ro "$ROOT${bind#*=}"
done
mount -t proc proc "$ROOT/proc"
mount --bind "$ROOT/proc/sys" "$ROOT/proc/sys"
mount -o remount,bind,ro "$ROOT/proc/sys"
mount -t sysfs -o ro sysfs "$ROOT/sys"
mount -t cgroup2 cgroup2 "$ROOT/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$ROOT/run"
mount -t tmpfs -o mode=755 tmpfs "$ROOT/dev"
cd "$ROOT/dev"
mknod -m 666 null c 1 3; mknod -m 666 zero c 1 5; mknod -m 666 full c 1 7
mknod -m 666 random c 1 8; mknod -m 666 urandom c 1 9; mknod -m 666 tty c 5 0
ln -s /proc/self/fd fd; ln -s fd/0 stdin; ln -s fd/1 stdout; ln -s fd/2 stderr
mkdir pts shm; mount -t tmpfs tmpfs shm; mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts pts; ln -s pts/ptmx ptmx
mount --make-rshared "$ROOT" # as systemd expects it in a container: how it passes mounts (of credentials, say) to services
hostname "$NAME"; echo "$NAME" > "$ROOT/etc/hostname"
ip link set lo up
test -z "$ADDR" || ip address add "$ADDR/24" dev lo
cd /
exec chroot "$ROOT" /usr/bin/env -i container=lab PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
	$INIT
`

// initProgram is the first process of a machine.
type initProgram struct {
	command string
	running string // a line of shell that fails until services can be started
}

var (
	systemdInit = initProgram{"/lib/systemd/systemd --system --unit=basic.target --show-status=no",
		"s=$(systemctl is-system-running || :); echo $s; test $s = running -o $s = degraded"}
	runitInit  = initProgram{"/bin/sh -c 'mkdir -p /run/runit; exec runsvdir -P /etc/service'", "test -d /run/runit"}
	openRCInit = initProgram{"/sbin/openrc-init", "rc-status --runlevel | grep -qx default"}
)

// outerScript moves to a cgroup of our own first: what systemd makes is below that.
const outerScript = `echo 0 > "$CGROUP/cgroup.procs" &&
exec unshare --mount --pid --fork --kill-child --uts --ipc --net --cgroup /bin/sh -c "$BOOT"`

// boot starts a machine.
func boot(ctx context.Context, base, dir, name, addr string, binds map[string]string,
	init initProgram) (*machine, error) {
	m := &machine{dir: dir, root: filepath.Join(dir, "root"), base: base, binds: binds, addr: addr}
	for _, d := range []string{"root", "upper", "work"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	var err error
	if m.cgroup, err = makeCgroup(name); err != nil {
		return nil, err
	}
	var list []string
	for there, here := range binds {
		list = append(list, here+"="+there)
	}
	m.outer = exec.Command("/bin/sh", "-c", outerScript)
	m.outer.Env = append(os.Environ(), "BASE="+base, "DIR="+dir, "ROOT="+m.root, "BINDS="+strings.Join(list, " "),
		"ADDR="+m.addr, "NAME="+name,
		"CGROUP="+m.cgroup, "BOOT="+strings.ReplaceAll(bootScript, "$INIT", init.command))
	m.outer.Stdout, m.outer.Stderr = &m.console, &m.console
	if err := m.outer.Start(); err != nil {
		return nil, err
	}
	err = await(ctx, time.Minute, "services in the machine", func() error {
		if m.pid, err = onlyChild(m.outer.Process.Pid); err != nil {
			return err
		}
		_, err := m.sh(ctx, init.running)
		return err
	})
	if err != nil {
		m.close()
		return nil, fmt.Errorf("%w\n%s", err, tail(m.console.String()))
	}
	return m, nil
}

// makeCgroup makes one in the unified hierarchy, below our own.
func makeCgroup(name string) (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	below := "/"
	for line := range strings.Lines(string(own)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			below = path
		}
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			dir := filepath.Join(f[1], below, "saltclusterd-packages-"+strconv.Itoa(os.Getpid())+"-"+name)
			return dir, os.MkdirAll(dir, 0o755)
		}
	}
	return "", errors.New("no cgroup2 is mounted here")
}

// link gives machines an Ethernet: a switch in the first one's network namespace, and an address for each.
func link(ctx context.Context, machines []*machine, addrs []string) error {
	first := machines[0]
	if _, err := first.sh(ctx,
		"ip link add lan type bridge; ip link set lan up; ip address add "+addrs[0]+"/24 dev lan"); err != nil {
		return err
	}
	for i, m := range machines[1:] {
		port := fmt.Sprintf("port%d", i)
		out, err := exec.CommandContext(ctx, "ip", "link", "add", port, "netns", strconv.Itoa(first.pid), "type", "veth",
			"peer", "name", "eth0", "netns", strconv.Itoa(m.pid)).CombinedOutput()
		if err != nil {
			return fmt.Errorf("link two machines: %w\n%s", err, out)
		}
		if _, err := first.sh(ctx, "ip link set "+port+" master lan up"); err != nil {
			return err
		}
		if _, err := m.sh(ctx, "ip address add "+addrs[i+1]+"/24 dev eth0; ip link set eth0 up"); err != nil {
			return err
		}
	}
	return nil
}

func onlyChild(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// run runs a command in the machine and returns what it printed.
func (m *machine) run(ctx context.Context, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	args := []string{"--target", strconv.Itoa(m.pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root",
		"/usr/bin/env", "--chdir=/", "-i", "HOME=/root", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	out, err := exec.CommandContext(ctx, "nsenter", append(args, argv...)...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, tail(string(out)))
	}
	return string(out), nil
}

// sh is run for a line of shell.
func (m *machine) sh(ctx context.Context, script string) (string, error) {
	return m.run(ctx, "/bin/sh", "-ec", "export COLUMNS=1000\n"+script) // saltclusterctl does not wrap what tests look for
}

// property of saltclusterd's unit.
func (m *machine) property(ctx context.Context, name string) (string, error) {
	out, err := m.run(ctx, "systemctl", "show", "--property="+name, "--value", "saltclusterd.service")
	return strings.TrimSpace(out), err
}

// close ends all processes of the machine and removes what it was made of.
func (m *machine) close() error {
	if m.pid != 0 {
		if p, err := os.FindProcess(m.pid); err == nil {
			_ = p.Kill() // with the first process of their namespace all others end
		}
	} else {
		_ = m.outer.Process.Kill()
	}
	_ = m.outer.Wait()
	return errors.Join(os.RemoveAll(filepath.Join(m.dir, "upper")), os.RemoveAll(filepath.Join(m.dir, "work")),
		await(context.Background(), 30*time.Second, "the cgroups to be empty",
			func() error { return removeCgroups(m.cgroup) }))
}

func removeCgroups(dir string) error {
	var all []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	for _, path := range slices.Backward(all) {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// await asks until the answer is good.
func await(ctx context.Context, within time.Duration, what string, good func() error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		err := good()
		if err == nil {
			return nil
		}
		if !backoff.Sleep(ctx, 100*time.Millisecond) {
			return fmt.Errorf("waited %s for %s: %w", within, what, err)
		}
	}
}
