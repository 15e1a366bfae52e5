package adopt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"saltclusterd/cmd/saltclusterctl/doctor"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
)

// Asked is what the operator wants; empty fields mean: as configured, or what is usual.
type Asked struct {
	Own       string // saltclusterd's main configuration file
	Master    string // the salt-master's
	Command   string // the salt-master's program
	Node      string // id of this node
	ClusterID string
	Proc      string // /proc
}

// Site is what was found on this host.
type Site struct {
	Asked Asked

	Own        *config.Config
	OwnMissing bool              // the main file is not there
	OwnSource  map[string]string // where an option is set; options with defaults are not in it
	OwnWrong   config.Findings   // but for what is merely not set yet

	Command    string // the salt-master's, as saltclusterd will find it
	Master     *localmaster.Config
	DropIn     string // where it belongs; empty: nowhere, see DropInErr
	DropInErr  error
	DropInText []byte // what stands there; nil: nothing
	RunnerDir  string // of our runners; empty: they are not installed

	Key     *saltcrypt.MasterKey // the master's own; nil: see KeyErr
	KeyErr  error
	Keys    map[string]int // key files by directory
	Markers []string       // left in pki_dir by a cluster that this master belonged to

	Listeners []doctor.Listener // on the ports that matter
	Minions   []netip.Addr      // who is connected to publish_port
	Addresses []netip.Addr      // of this host
	UID       int

	Known  bool             // state_dir knows a cluster
	Status *adminapi.Status // of the daemon; nil: it does not answer
}

// runnerDir is where the packages put the runner.
const runnerDir = "/usr/share/saltclusterd/runners"

// Look finds out. The error says what keeps it from looking at all.
func Look(ctx context.Context, a Asked, status *adminapi.Status) (*Site, error) {
	s := &Site{Asked: a, Status: status, UID: os.Geteuid()}
	s.readOwn()
	if err := s.readMaster(ctx); err != nil {
		return s, err
	}
	s.readKeys()
	ports := []int{s.Master.PublishPort, s.Master.RetPort, s.Own.Cluster.PoolPort, portOf(s.Own.Health.Listen)}
	s.Listeners, _ = doctor.Listeners(a.Proc, ports...)
	s.Minions, _ = doctor.Connected(a.Proc, s.Master.PublishPort)
	s.Addresses, _ = doctor.HostAddresses()
	_, err := os.Stat(filepath.Join(s.Own.Paths.StateDir, "membership.json"))
	s.Known = err == nil
	if _, err := os.Stat(runnerDir); err == nil {
		s.RunnerDir = runnerDir
	}
	return s, nil
}

// unset are the options that setup gives a value to.
var unset = []string{"cluster_id", "cluster_secret"}

func (s *Site) readOwn() {
	cfg, err := config.Load(s.Asked.Own)
	s.Own, s.OwnSource = cfg, map[string]string{}
	for _, o := range cfg.Show().Options {
		if o.Source != "default" {
			s.OwnSource[o.Name] = o.Source
		}
	}
	_, err2 := os.Stat(s.Asked.Own)
	s.OwnMissing = errors.Is(err2, fs.ErrNotExist)
	found, _ := errors.AsType[config.Findings](err)
	for _, f := range found {
		_, set := s.OwnSource[f.Option]
		toBeSet := slices.Contains(unset, f.Option) && !set
		if toBeSet || s.OwnMissing && f.File == s.Asked.Own && f.Option == "" || f.Option == "id" && s.Asked.Node != "" && !set {
			continue
		}
		s.OwnWrong = append(s.OwnWrong, f)
	}
}

func (s *Site) readMaster(ctx context.Context) error {
	s.Command = cmp.Or(s.Asked.Command, s.Own.Salt.MasterCommand)
	s.Command = findProgram(s.Command)
	version, err := localmaster.DetectVersion(ctx, s.Command)
	if err != nil {
		return fmt.Errorf("no salt-master: %w", err)
	}
	path := cmp.Or(s.Asked.Master, s.Own.Salt.Config)
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("read the salt-master's configuration: %w", err)
	}
	if s.Master, err = localmaster.LoadConfig(path, version); err != nil {
		return err
	}
	if s.DropIn, s.DropInErr = s.Master.DropInPath(); s.DropInErr != nil {
		return nil
	}
	if s.DropInText, err = os.ReadFile(s.DropIn); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the drop-in: %w", err)
	}
	return nil
}

// servicePath is where systemd looks for programs.
var servicePath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// findProgram leaves a name as it is where a service finds it, and makes it a path elsewhere.
func findProgram(command string) string {
	name, rest, _ := strings.Cut(command, " ")
	if strings.Contains(name, "/") {
		return command
	}
	path, err := exec.LookPath(name)
	if err != nil || slices.Contains(servicePath, filepath.Dir(path)) {
		return command
	}
	return strings.TrimSpace(path + " " + rest)
}

// keyDirs are the directories of a master's keys.
var keyDirs = []string{"minions", "minions_pre", "minions_rejected", "minions_denied"}

func (s *Site) readKeys() {
	private, _, err := localmaster.ReadIdentity(s.Master)
	if err == nil {
		s.Key, err = saltcrypt.ParseMasterKey(private)
	}
	s.KeyErr = err
	s.Keys = map[string]int{}
	for _, dir := range keyDirs {
		entries, _ := os.ReadDir(filepath.Join(s.Master.PkiDir, dir))
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") {
				s.Keys[dir]++
			}
		}
	}
	s.Markers, _ = filepath.Glob(filepath.Join(s.Master.PkiDir, ".saltclusterd-keys.*"))
}

func portOf(address string) int {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return 0
	}
	return int(a.Port())
}
