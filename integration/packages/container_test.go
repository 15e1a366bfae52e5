//go:build integration

package packages

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// baseImage is the Debian of the other tests under a name that a Containerfile can begin with.
const baseImage = "localhost/saltclusterd-test-base"

// buildah runs the builder with a store of its own, below a directory that goes with the test.
func buildah(t *testing.T, store string, argv ...string) string {
	t.Helper()
	args := append([]string{"--root", filepath.Join(store, "root"), "--runroot", filepath.Join(store, "run"),
		"--storage-driver", "vfs"}, argv...)
	cmd := exec.CommandContext(t.Context(), "buildah", args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+store)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("buildah %v: %v\n%s%s", argv, err, out, tail(errs.String()))
	}
	return strings.TrimSpace(string(out))
}

// TestContainers builds saltclusterd's image and the salt-master's but for Salt itself, which is in a virtualenv here,
// and runs both as a pod does: with the volumes of the Kubernetes example, as 450 with no capabilities on read-only
// roots, each in a process namespace of its own, in one network.
func TestContainers(t *testing.T) {
	needLong(t)
	venvs := os.Getenv("SALTCLUSTER_VENVS")
	dir, err := base(t.Context(), t.Log)
	require.NoError(t, err)
	root := moduleRoot(t)
	out := filepath.Join(made, newVersion)
	if _, err := os.Stat(filepath.Join(out, "SHA256SUMS")); err != nil {
		build(t.Context(), t, root, out, newVersion, "-arch", "amd64")
	}
	store := t.TempDir()
	context := filepath.Join(store, "context")
	for to, from := range map[string]string{"dist": out, "packaging": filepath.Join(root, "packaging")} {
		require.NoError(t, os.CopyFS(filepath.Join(context, to), os.DirFS(from)))
	}
	from := buildah(t, store, "from", "scratch")
	buildah(t, store, "copy", "-q", from, dir, "/")
	buildah(t, store, "commit", "-q", from, baseImage)
	args := []string{"bud", "-q", "--isolation", "chroot", "--pull-never", "-f",
		filepath.Join(context, "packaging/container/Containerfile"),
		"--build-arg", "BASE=" + baseImage, "--build-arg", "VERSION=" + newVersion}
	buildah(t, store, append(args, "--format", "docker", "--target", "saltclusterd", "-t", "saltclusterd", context)...)
	buildah(t, store, append(args, "--target", "account", "-t", "account", context)...)
	about := buildah(t, store, "inspect", "--type", "image", "saltclusterd")
	for _, want := range []string{`"/livez"`, `"450:450"`, `"/usr/lib/saltclusterd/bin/serve"`, `"4520/udp"`,
		`"SIGTERM"`} {
		if !strings.Contains(about, want) {
			t.Errorf("the image says nothing of %s", want)
		}
	}

	roots := map[string]string{}
	for _, image := range []string{"saltclusterd", "account"} {
		roots[image] = buildah(t, store, "mount", buildah(t, store, "from", "--pull-never", image))
	}
	t.Cleanup(func() {
		out, err := exec.Command("buildah", "--root", filepath.Join(store, "root"), "--runroot", filepath.Join(store, "run"),
			"--storage-driver", "vfs",
			"umount", "--all").CombinedOutput()
		if err != nil {
			t.Logf("%v: %s", err, out)
		}
	})
	p, err := openPod(t.Context(), filepath.Join(store, "pod"), venvs)
	require.NoError(t, err)
	defer p.close()
	(&podTest{t, p, roots, filepath.Join(venvs, salt, "bin") + ":/usr/bin:/bin",
		filepath.Join(venvs, salt, "bin")}).run(root)
}

// podTest is the life of a pod.
type podTest struct {
	t     *testing.T
	pod   *pod
	roots map[string]string // by image
	path  string            // in the salt-master's containers
	bin   string            // of Salt
}

// configure lays down what Kubernetes would: the example's ConfigMap, without names that nobody knows here, and a
// secret.
func (p *podTest) configure(root string) {
	raw, err := os.ReadFile(filepath.Join(root, "packaging/kubernetes/saltclusterd.yaml"))
	require.NoError(p.t, err)
	put := func(name, text string) {
		path := filepath.Join(p.pod.dir, name)
		require.NoError(p.t, errors.Join(os.WriteFile(path, []byte(text), 0o440), os.Chown(path, 0, podID)))
	}
	for d := yaml.NewDecoder(bytes.NewReader(raw)); ; {
		var o struct {
			Kind string
			Data map[string]string
		}
		if err := d.Decode(&o); err != nil {
			break
		}
		if o.Kind == "ConfigMap" {
			put("config/master", o.Data["master"]+"worker_threads: 3\n")
			put("config/saltclusterd", regexp.MustCompile(`cluster_peers: .*`).ReplaceAllString(o.Data["saltclusterd"],
				"cluster_peers: ["+podAddr+"]")+
				"drain_announce: 0s\ndrain_time: 1s\n")
		}
	}
	secret := make([]byte, 24)
	_, _ = rand.Read(secret)
	put("secret/cluster_secret", base64.StdEncoding.EncodeToString(secret)+"\n")
}

func (p *podTest) start(image, path string, argv ...string) *container {
	p.t.Helper()
	c, err := p.pod.start(p.roots[image], path, argv...)
	require.NoError(p.t, err)
	p.t.Cleanup(func() {
		c.kill()
		if p.t.Failed() {
			p.t.Logf("%v:\n%s", argv, tail(c.said.String()))
		}
	})
	return c
}

func (p *podTest) exec(c *container, argv ...string) string {
	p.t.Helper()
	out, err := c.exec(p.t.Context(), argv...)
	require.NoError(p.t, err)
	return out
}

func (p *podTest) await(within time.Duration, what string, c *container, argv ...string) {
	p.t.Helper()
	require.NoError(p.t, await(p.t.Context(), within, what,
		func() error { _, err := c.exec(p.t.Context(), argv...); return err }))
}

const (
	inImage    = "/usr/lib/saltclusterd/bin/"
	daemonPath = "/usr/bin:/bin"
)

// processes lists those of a container by name, what asks included. With a second saltclusterd the first process looks
// every second whether one is there; the sleep in between comes and goes.
var processes = []string{"/bin/sh", "-c", `all="$(cat /proc/[0-9]*/comm)"; echo "$all" | grep -vx sleep | sort`}

func (p *podTest) run(root string) {
	p.configure(root)
	if out, err := p.pod.run(p.roots["account"], p.path, inImage+"prepare"); err != nil {
		p.t.Fatalf("prepare: %v\n%s", err, out)
	}
	daemon := p.start("saltclusterd", daemonPath, inImage+"serve")
	p.await(time.Minute, "saltclusterd to live", daemon, inImage+"probe", "/livez")
	if _, err := daemon.exec(p.t.Context(), inImage+"probe", "/readyz"); err == nil {
		p.t.Error("it is ready before it belongs to a cluster")
	}

	// The master waits for the cluster, and begins with its identity.
	master := p.start("account", p.path, inImage+"master")
	p.await(10*time.Second, "the salt-master's container", master, "/bin/sh", "-c",
		"tr '\\0' ' ' </proc/1/cmdline | grep -q bin/master")
	p.exec(daemon, "saltclusterctl", "bootstrap")
	p.await(2*time.Minute, "a node that is ready", daemon, inImage+"probe", "/readyz")
	p.await(time.Minute, "no problem", daemon, "saltclusterctl", "status", "--check")
	if out := p.exec(master, "salt-run", "cluster.members", "--out", "json"); !strings.Contains(out, `"salt-0"`) {
		p.t.Errorf("the runner says %s", out)
	}

	p.minion(master)
	answers := []string{"/bin/sh", "-c", "salt --timeout 5 web1 test.ping --out txt | grep -q 'web1: True'"}
	p.await(90*time.Second, "the minion to answer", master, answers...)

	// Another saltclusterd takes over, and the container stays.
	before := p.exec(daemon, processes...)
	p.exec(daemon, "saltclusterctl", "upgrade")
	p.exec(daemon, inImage+"probe", "/livez")
	p.await(time.Minute, "the minion to answer", master, answers...)
	if err := await(p.t.Context(), time.Minute, "the same processes as before", func() error {
		now, err := daemon.exec(p.t.Context(), processes...)
		if err == nil && now != before {
			err = fmt.Errorf("they were %q and are %q", before, now)
		}
		return err
	}); err != nil {
		p.t.Fatal(err)
	}

	// It stops, drained, and serves again without anybody's word; an operator's own drain stays.
	p.exec(master, inImage+"leave", "20s") // nobody else is there, so it is refused, and the mark remains
	p.exec(daemon, "saltclusterctl", "drain", "--self", "--force")
	require.NoError(p.t, daemon.stop(time.Minute), "saltclusterd's container")
	daemon = p.start("saltclusterd", daemonPath, inImage+"serve")
	p.await(time.Minute, "a node that is ready again", daemon, inImage+"probe", "/readyz")
	p.await(time.Minute, "the mark to go", daemon, "test", "!", "-e", "/var/lib/saltclusterd/drained-to-stop")
	p.await(time.Minute, "the minion to answer", master, answers...)
	p.exec(daemon, "saltclusterctl", "drain", "--self", "--force")
	p.exec(master, inImage+"leave", "20s")
	p.exec(daemon, "test", "!", "-e", "/var/lib/saltclusterd/drained-to-stop")

	if err := master.stop(time.Minute); err != nil {
		p.t.Logf("the salt-master's container: %v", err) // it ends by the signal
	}
	check.NoError(p.t, daemon.stop(time.Minute), "saltclusterd's container")
}

// minion starts one in the pod's network, outside of the containers, and has it accepted.
func (p *podTest) minion(master *container) {
	dir := p.t.TempDir()
	text := "master: " + podAddr + "\nid: web1\nroot_dir: " + dir + "\nacceptance_wait_time: 1\nrandom_reauth_delay: 1\n"
	require.NoError(p.t, os.WriteFile(filepath.Join(dir, "minion"), []byte(text), 0o600))
	args := p.pod.net(filepath.Join(p.bin, "salt-minion"), "-c", dir)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(p.t, cmd.Start())
	p.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	p.await(90*time.Second, "the minion's key", master, "/bin/sh", "-c", "salt-key -l pre --out json | grep -q web1")
	p.exec(master, "salt-key", "-y", "-a", "web1")
}
