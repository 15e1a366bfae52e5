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
	"time"

	"saltclusterd/cmd/saltclusterctl/doctor"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/fsync/keydir"
	"saltclusterd/fsync/mmapkeys"
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
	Join      string // a member of the cluster that this node is to join; empty: it founds one
	Proc      string // /proc
	Srv       string // /srv: packages have no files there, so setup may change who owns a root in it
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
	WheelDir   string // of our wheel modules, as the runners

	Key        *saltcrypt.MasterKey // the master's own; nil: see KeyErr
	KeyErr     error
	Keys       map[string]int // key files by directory
	keysHidden bool           // they may not be read
	KeysDir    string         // with these directories
	Markers    []string       // left in pki_dir by a cluster that this master belonged to

	Listeners []doctor.Listener // on the ports that matter
	Minions   []netip.Addr      // who is connected to publish_port
	Addresses []netip.Addr      // of this host
	UID       int

	native *native // Salt's own cluster, which the master still belongs to; nil: none

	Known  bool             // state_dir knows a cluster
	Status *adminapi.Status // of the daemon; nil: it does not answer
}

// wheelDir is where the packages put the wheel modules.
const wheelDir = "/usr/share/saltclusterd/wheel"

// findWheels is wheelDir where it is installed.
func findWheels() string {
	if _, err := os.Stat(wheelDir); err != nil {
		return ""
	}
	return wheelDir
}

// runnerDir is where the packages put the runners.
const runnerDir = "/usr/share/saltclusterd/runners"

// Look finds out. The error says what keeps it from looking at all.
func Look(ctx context.Context, a Asked, status *adminapi.Status) (*Site, error) {
	s := &Site{Asked: a, Status: status, UID: os.Geteuid(), WheelDir: findWheels()}
	s.readOwn()
	if err := s.readMaster(ctx); err != nil {
		return s, err
	}
	_, err := os.Stat(filepath.Join(s.Own.Paths.StateDir, "membership.json"))
	s.Known = err == nil
	s.readNative()
	s.readKeys(ctx)
	ports := []int{s.Master.PublishPort, s.Master.RetPort, s.poolPort(), portOf(s.Own.Health.Listen)}
	s.Listeners, _ = doctor.Listeners(a.Proc, ports...)
	s.Minions, _ = doctor.Connected(a.Proc, s.Master.PublishPort)
	s.Addresses, _ = doctor.HostAddresses()
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
		if toBeSet || s.OwnMissing && f.File == s.Asked.Own && f.Option == "" || f.Option == "id" && s.Asked.Node != "" &&
			!set {
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

func (s *Site) readKeys(ctx context.Context) {
	private, _, err := localmaster.ReadIdentity(s.Master)
	stem := strings.TrimSuffix(s.Master.ID, "_master")
	if text := storedKey(ctx, s.Master.PkiDir, Store(s.Master), stem+".pem", "master.pem"); text != nil {
		private, err = text, nil
	}
	s.KeysDir = s.Master.PkiDir
	if n := s.native; n != nil {
		s.KeysDir = n.pki
		private, err = n.readPrivate(ctx)
	}
	if err == nil {
		s.Key, err = saltcrypt.ParseMasterKey(private)
	}
	s.KeyErr = err
	s.Keys = map[string]int{}
	for _, dir := range keyDirs {
		entries, err := os.ReadDir(filepath.Join(s.KeysDir, dir))
		s.keysHidden = s.keysHidden || errors.Is(err, fs.ErrPermission)
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") {
				s.Keys[dir]++
			}
		}
	}
	s.Markers = s.findMarkers()
}

func (s *Site) findMarkers() []string {
	found, _ := filepath.Glob(filepath.Join(s.Master.PkiDir, keydir.MarkerPattern))
	return found
}

// storedKey is a key of the master's own where it has it in its store; nil: it has not.
func storedKey(ctx context.Context, pki string, g *mmapkeys.Geometry, names ...string) []byte {
	if g == nil {
		return nil
	}
	b, err := mmapkeys.NewBank(pki, mmapkeys.MasterKeys, *g)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for _, name := range names {
		if e, ok, err := b.Get(ctx, name); err == nil && ok && !e.Damaged {
			return e.Value
		}
	}
	return nil
}

// storeTimeout is how long the store's lock is waited for.
const storeTimeout = 5 * time.Second

// Identity is the fingerprint of the key that minions of this host's master trust; empty: there is none, or it cannot
// be read.
func (s *Site) Identity() string {
	if s.Key == nil {
		return ""
	}
	return saltcrypt.Fingerprint(s.Key.PublicText())
}

// Store is how the master's own key store is laid out; nil when it has its keys in files only.
func Store(m *localmaster.Config) *mmapkeys.Geometry {
	if m.Version.Major < 3008 || m.Text("keys.cache_driver") != "mmap_key" {
		return nil
	}
	g := mmapkeys.Configured(func(name string) int { return int(m.Int(name)) })
	return &g
}

func portOf(address string) int {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return 0
	}
	return int(a.Port())
}
