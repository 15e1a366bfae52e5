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
	"syscall"
	"time"
)

// podID is whom the containers run as, podAddr the address of their host.
const (
	podID   = 450
	podAddr = "10.99.0.21"
)

// podVolumes are those of the Kubernetes example: path in the containers, directory of the pod.
var podVolumes = map[string]string{
	"/etc/salt": "etc", "/etc/salt/pki": "data/pki", "/var/lib/saltclusterd": "data/saltclusterd",
	"/var/cache/salt": "data/cache",
	"/srv/salt":       "data/states", "/srv/pillar": "data/pillar", "/run/salt": "sockets/salt",
	"/run/saltclusterd":         "sockets/saltclusterd",
	"/run/secrets/saltclusterd": "secret", "/tmp": "tmp", "/var/log/salt": "log", "/config": "config",
}

// pod is a network namespace with an address, and the volumes that its containers share.
type pod struct {
	dir   string
	binds []string // directories of this host that containers see, read-only, at the same path
	pause *exec.Cmd
}

// openPod makes one. Volumes belong to root and the group of the containers, as Kubernetes has them (fsGroup).
func openPod(ctx context.Context, dir string, binds ...string) (*pod, error) {
	p := &pod{dir: dir, binds: binds}
	for _, v := range podVolumes {
		path := filepath.Join(dir, v)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return nil, err
		}
		if err := errors.Join(os.Chown(path, 0, podID), os.Chmod(path, 0o775|os.ModeSetgid)); err != nil {
			return nil, err
		}
	}
	p.pause = exec.Command("unshare", "--net", "/bin/sh", "-c",
		"ip link set lo up && ip link add eth0 type veth peer name eth1 && ip address add "+podAddr+"/24 dev eth0 && ip link set eth0 up && ip link set eth1 up && echo up && exec sleep infinity")
	var said bytes.Buffer
	p.pause.Stderr = &said
	up, err := p.pause.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.pause.Start(); err != nil {
		return nil, err
	}
	if _, err := up.Read(make([]byte, 2)); err != nil {
		return nil, errors.Join(fmt.Errorf("the pod's network: %w", err), p.close(), errors.New(said.String()))
	}
	return p, nil
}

func (p *pod) close() error {
	_ = p.pause.Process.Kill()
	_ = p.pause.Wait()
	return nil
}

// net runs a program of this host in the pod's network.
func (p *pod) net(argv ...string) []string {
	return append([]string{"nsenter", "--net=/proc/" + strconv.Itoa(p.pause.Process.Pid) + "/ns/net"}, argv...)
}

// container is a process in a root of its own, which is read-only, with the pod's network and volumes.
type container struct {
	pod   *pod
	outer *exec.Cmd
	path  string // $PATH in it
	pid   int    // of its first process, here
	said  bytes.Buffer
}

// containerScript mounts what a container sees, and becomes the program as who has no rights at all.
const containerScript = `set -e
mount --make-rprivate /
mount --bind "$ROOT" "$ROOT"
chmod 711 "$ROOT/root"
for bind in $BINDS $VOLUMES; do mkdir -p "$ROOT${bind#*=}"; done
mount -o remount,bind,ro "$ROOT"
mount -t proc proc "$ROOT/proc"
mount -t tmpfs -o mode=755 tmpfs "$ROOT/dev"
mknod -m 666 "$ROOT/dev/null" c 1 3; mknod -m 666 "$ROOT/dev/zero" c 1 5; mknod -m 666 "$ROOT/dev/random" c 1 8; mknod -m 666 "$ROOT/dev/urandom" c 1 9
ln -s /proc/self/fd "$ROOT/dev/fd"
mkdir -m 1777 "$ROOT/dev/shm"; mount -t tmpfs tmpfs "$ROOT/dev/shm"
for bind in $BINDS; do mount --bind "${bind%%=*}" "$ROOT${bind#*=}"; mount -o remount,bind,ro "$ROOT${bind#*=}"; done
for bind in $VOLUMES; do mkdir -p "$ROOT${bind#*=}"; mount --bind "${bind%%=*}" "$ROOT${bind#*=}"; done
cd /
exec chroot "$ROOT" ` + inside + ` ` + asNobody + ` "$@"
`

// inside is the environment of everything in a container. What stands in /proc is not: Salt's processes write their
// names over it.
const inside = `/usr/bin/env -i "PATH=$INNERPATH" NODE=salt-0 "ADDRESS=$ADDR" HOME=/tmp LANG=C.UTF-8`

const asNobody = `/usr/bin/setpriv --reuid=450 --regid=450 --clear-groups --bounding-set=-all --no-new-privs`

// start runs a program in a root, with a $PATH.
func (p *pod) start(root, path string, argv ...string) (*container, error) {
	var volumes, binds []string
	for to, dir := range podVolumes {
		volumes = append(volumes, filepath.Join(p.dir, dir)+"="+to)
	}
	slices.SortFunc(volumes, func(a, b string) int { // what is within another one after it
		return strings.Count(a[strings.Index(a, "="):], "/") - strings.Count(b[strings.Index(b, "="):], "/")
	})
	for _, b := range p.binds {
		binds = append(binds, b+"="+b)
	}
	c := &container{pod: p, path: path}
	args := p.net("unshare", "--mount", "--pid", "--fork", "--kill-child", "--ipc", "/bin/sh", "-c", containerScript,
		"container")
	c.outer = exec.Command(args[0], append(args[1:], argv...)...)
	c.outer.Env = append(os.Environ(), "ROOT="+root, "VOLUMES="+strings.Join(volumes, " "),
		"BINDS="+strings.Join(binds, " "), "ADDR="+podAddr,
		"INNERPATH="+path)
	c.outer.Stdout, c.outer.Stderr = &c.said, &c.said
	return c, c.outer.Start()
}

// run starts a program in a root and waits for it.
func (p *pod) run(root, path string, argv ...string) (string, error) {
	c, err := p.start(root, path, argv...)
	if err == nil {
		err = c.outer.Wait()
	}
	return c.said.String(), err
}

// exec runs a program in the container beside the first one, as kubectl exec and the probes do.
func (c *container) exec(ctx context.Context, argv ...string) (string, error) {
	if c.pid == 0 {
		var err error
		if c.pid, err = onlyChild(c.outer.Process.Pid); err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	// Salt's programs end without a directory
	args := []string{"--target", strconv.Itoa(c.pid), "--mount", "--ipc", "--net", "--pid", "--root", "--wd",
		"/bin/sh", "-c", "exec " + inside + " " + asNobody + ` "$@"`, "container"}
	cmd := exec.CommandContext(ctx, "nsenter", append(args, argv...)...)
	cmd.Env = append(os.Environ(), "ADDR="+podAddr, "INNERPATH="+c.path)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, tail(string(out)))
	}
	return string(out), nil
}

// stop asks the first process to end, as Kubernetes does, and waits until the container has.
func (c *container) stop(within time.Duration) error {
	if _, err := c.exec(context.Background(), "true"); err != nil {
		return err
	}
	if err := syscall.Kill(c.pid, syscall.SIGTERM); err != nil {
		return err
	}
	late := time.AfterFunc(within, func() { _ = c.outer.Process.Kill() })
	err := c.outer.Wait()
	if !late.Stop() {
		return fmt.Errorf("it did not end within %s", within)
	}
	return err
}

// kill ends it in any way. Its first process does not go with the one outside: the kernel forgets that it should when
// it gives up its rights.
func (c *container) kill() {
	if first, err := onlyChild(c.outer.Process.Pid); err == nil {
		_ = syscall.Kill(first, syscall.SIGKILL)
	}
	_ = c.outer.Process.Kill()
	_ = c.outer.Wait()
}
