package mastertest

import "testing"

// Options says which master to start.
type Options struct {
	Version   string // a name from Versions, required
	ID        string // option id ("mastertest")
	Host      string // loopback address to bind (a free 127.x.y.z)
	Config    string // more YAML, appended to the main file
	MasterPEM []byte // identity to install before the first start
}

// Master is a running stock salt-master.
type Master struct {
	Version              string
	Dir                  string // root_dir; everything the master writes is below
	ConfigDir            string // for -c
	ConfigPath           string // the main file
	Host                 string
	PublishPort, RetPort int
}

// Start runs a master and waits until it answers a ping. The test's cleanup stops it.
func Start(t testing.TB, o Options) *Master { t.Helper(); return &Master{} }

// Stop ends the master and its children (SIGTERM, then SIGKILL); it can be started again.
func (m *Master) Stop() {}

// Kill ends it with SIGKILL.
func (m *Master) Kill() {}

// Start runs it again after Stop or Kill and waits until it answers.
func (m *Master) Start() {}

// Run executes a Salt command ("salt-key", "-L") of the master's version with -c and returns its output.
func (m *Master) Run(name string, args ...string) string { return "" }

// Python runs a script with the version's interpreter; args arrive in sys.argv[1:].
func (m *Master) Python(script string, args ...string) string { return "" }

// Log returns the master's log so far.
func (m *Master) Log() string { return "" }
