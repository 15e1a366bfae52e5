package mastertest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// startTimeout bounds the wait for the first answer; a master needs 3-8 s on an idle machine.
const startTimeout = 60 * time.Second

// Options says which master to start.
type Options struct {
	Version     string // a name from Versions, required
	ID          string // option id ("mastertest")
	Host        string // loopback address to bind (a free 127.x.y.z)
	Config      string // more YAML, appended to the main file
	MasterPEM   []byte // identity to install before the first start
	PublishPort int    // 14505
	RetPort     int    // 14506
}

// Master is a running stock salt-master.
type Master struct {
	Version              string
	Dir                  string // root_dir; everything the master writes is below
	ConfigDir            string // for -c
	ConfigPath           string // the main file
	PkiDir               string
	CacheDir             string
	SockDir              string
	Host                 string
	PublishPort, RetPort int

	t testing.TB
	p *process
}

// New lays out a master without starting it, for tests that change files first.
func New(t testing.TB, o Options) *Master {
	t.Helper()
	dir, err := os.MkdirTemp("", "scm") // short: the sockets below must fit into sun_path
	if err != nil {
		t.Fatal(err)
	}
	m := &Master{
		Version: o.Version, Dir: dir, t: t, Host: o.Host, PublishPort: o.PublishPort, RetPort: o.RetPort,
		ConfigDir: filepath.Join(dir, "etc/salt"), ConfigPath: filepath.Join(dir, "etc/salt/master"),
		PkiDir: filepath.Join(dir, "etc/salt/pki/master"), CacheDir: filepath.Join(dir, "var/cache/salt/master"),
		SockDir: filepath.Join(dir, "var/run/salt/master"),
	}
	t.Cleanup(func() { m.Kill(); _ = os.RemoveAll(dir) })
	if m.PublishPort == 0 {
		m.PublishPort, m.RetPort = 14505, 14506
	}
	if m.Host == "" {
		m.Host = freeHost(t, m.PublishPort, m.RetPort)
	}
	m.writeFile(m.ConfigPath, m.configText(o), 0o644)
	if o.MasterPEM != nil {
		m.writeFile(filepath.Join(m.PkiDir, "master.pem"), string(o.MasterPEM), 0o400)
	}
	return m
}

// Start runs a master and waits until it answers a ping. The test's cleanup stops it.
func Start(t testing.TB, o Options) *Master {
	t.Helper()
	m := New(t, o)
	m.Start()
	return m
}

func (m *Master) configText(o Options) string {
	id := o.ID
	if id == "" {
		id = "mastertest"
	}
	name := "root"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	workers := "worker_threads: 3\n" // of the usual five each costs half a second of a processor
	if strings.Contains(o.Config, "worker_threads:") {
		workers = ""
	}
	return fmt.Sprintf("root_dir: %s\nid: %s\nuser: %s\ninterface: %s\npublish_port: %d\nret_port: %d\n"+
		"log_file: %s\nlog_level_logfile: info\n"+workers+"%s\n",
		m.Dir, strconv.Quote(id), name, m.Host, m.PublishPort, m.RetPort, filepath.Join(m.Dir, "master.log"), o.Config)
}

// Start runs the master (again) and waits until it answers.
func (m *Master) Start() {
	m.t.Helper()
	p, err := startProcess(filepath.Join(m.Dir, "console.log"), Bin(m.t, m.Version, "salt-master"), "-c", m.ConfigDir)
	if err != nil {
		m.t.Fatal(err)
	}
	m.p = p
	deadline := time.Now().Add(startTimeout)
	for {
		err := Ping(m.ReqAddr(), 3*time.Second)
		if err == nil {
			return
		}
		if p.hasExited() || time.Now().After(deadline) {
			m.t.Fatalf("salt-master %s does not answer: %v\n%s", m.Version, err, m.Log())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Stop ends the master and its children (SIGTERM, then SIGKILL); it can be started again.
func (m *Master) Stop() {
	if m.p != nil {
		m.p.stopProcess(4 * time.Second)
		m.p = nil
	}
}

// Kill ends it and its children with SIGKILL.
func (m *Master) Kill() {
	if m.p != nil {
		m.p.killGroup()
		m.p = nil
	}
}

// PID returns the main process's id, 0 when it is not running. Its children share its process group.
func (m *Master) PID() int {
	if m.p == nil {
		return 0
	}
	return m.p.cmd.Process.Pid
}

// ReqAddr is host:port of the request socket.
func (m *Master) ReqAddr() string { return net.JoinHostPort(m.Host, strconv.Itoa(m.RetPort)) }

// PubAddr is host:port of the publish socket.
func (m *Master) PubAddr() string { return net.JoinHostPort(m.Host, strconv.Itoa(m.PublishPort)) }

// Run executes a Salt command ("salt-key", "-L") of the master's version with -c and returns its output.
func (m *Master) Run(name string, args ...string) string {
	m.t.Helper()
	out, err := m.TryRun(name, args...)
	if err != nil {
		m.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return out
}

// TryRun is Run for commands that may fail.
func (m *Master) TryRun(name string, args ...string) (string, error) {
	m.t.Helper()
	out, err := exec.Command(Bin(m.t, m.Version, name), append([]string{"-c", m.ConfigDir}, args...)...).CombinedOutput()
	return string(out), err
}

// Python runs a script with the version's interpreter; args arrive in sys.argv[1:].
func (m *Master) Python(script string, args ...string) string {
	m.t.Helper()
	return Python(m.t, m.Version, script, args...)
}

// Python runs a script with the interpreter of an installed version and returns its standard output.
func Python(t testing.TB, version, script string, args ...string) string {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.Command(Bin(t, version, "python"), append([]string{"-c", script}, args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("python of %s: %v\n%s", version, err, stderr.String())
	}
	return string(out)
}

// Log returns what the master has logged so far.
func (m *Master) Log() string {
	var all strings.Builder
	for _, name := range []string{"console.log", "master.log"} {
		if text, err := os.ReadFile(filepath.Join(m.Dir, name)); err == nil {
			all.Write(text)
		}
	}
	return all.String()
}

func (m *Master) writeFile(path, text string, mode os.FileMode) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		m.t.Fatal(err)
	}
}
