package localmaster

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// DropInName is the file the sidecar generates in the master's default_include directory. It sorts late, so that it
// wins over what was there before.
const DropInName = "zz-saltclusterd.conf"

// DropInInterface is the address that the drop-in gives a master which is not on loopback already.
const DropInInterface = "127.0.0.1"

// ErrDropIn means that the drop-in's options cannot be written.
var ErrDropIn = errors.New("localmaster: unusable drop-in option")

// DropInOptions says what goes into the drop-in.
type DropInOptions struct {
	Interface string // loopback address the master binds; empty: DropInInterface
	MasterID  string // this node's id
	Version   Version
	WheelDirs []string // the option wheel_dirs; empty: it is left alone
	// KeyDriver is the keys.cache_driver that the master is to keep; empty: localfs_key (3008).
	KeyDriver string
	// RunnerDirs is the option runner_dirs; empty: it is left alone.
	RunnerDirs []string
	// MoveTransport has the master speak zeromq on loopback, whatever its other files say; OnlyTransport, nothing else
	// beside it.
	MoveTransport, OnlyTransport bool
	// EndNative takes the master out of Salt's own cluster, whatever its other files say.
	EndNative bool
}

// DropIn renders the drop-in.
func DropIn(o DropInOptions) ([]byte, error) {
	if o.Interface == "" {
		o.Interface = DropInInterface
	}
	if a, err := netip.ParseAddr(o.Interface); err != nil || !a.IsLoopback() {
		return nil, fmt.Errorf("%w: interface %q is not a loopback address", ErrDropIn, o.Interface)
	}
	if o.MasterID == "" || strings.ContainsFunc(o.MasterID, unicode.IsControl) {
		return nil, fmt.Errorf("%w: master_id %q", ErrDropIn, o.MasterID)
	}
	var b strings.Builder
	b.WriteString(dropInHead + "; changes made here are overwritten. The salt-master serves this host only:\n" +
		"# minions reach it through saltclusterd, which binds the same ports on the host's own addresses.\n")
	fmt.Fprintf(&b, "interface: %s\n", quoteYAML(o.Interface))
	b.WriteString("# Tells saltclusterd which master a job's returns belong to.\n")
	fmt.Fprintf(&b, "master_id: %s\n", quoteYAML(o.MasterID))
	b.WriteString("# This master does not see minions' connections; saltclusterd fires these events (cluster_presence_events).\n" +
		"presence_events: False\n")
	if o.Version.Major >= 3008 && o.KeyDriver != "mmap_key" { // the master of a host that has one keeps it
		b.WriteString("# Where saltclusterd finds keys, and this version the keys of other masters' minions.\n" +
			"keys.cache_driver: localfs_key\n")
	}
	if o.MoveTransport {
		b.WriteString("# Between saltclusterd and this master. Minions keep their transport, and TLS as the option ssl says.\n" +
			"transport: zeromq\n")
	}
	if o.OnlyTransport {
		b.WriteString("# Minions use all transports on the two ports of saltclusterd.\ntransport_opts: {}\n")
	}
	if o.EndNative {
		b.WriteString("# The master leaves Salt's own cluster: its options in other files mean nothing without this one.\ncluster_id: null\n")
	}
	if len(o.RunnerDirs) > 0 {
		b.WriteString("# salt-run cluster.members, cluster.ring_info, cluster.sync_roots\nrunner_dirs:\n")
		for _, dir := range o.RunnerDirs {
			if strings.ContainsFunc(dir, unicode.IsControl) {
				return nil, fmt.Errorf("%w: runner_dirs %q", ErrDropIn, dir)
			}
			fmt.Fprintf(&b, "  - %s\n", quoteYAML(dir))
		}
	}
	if len(o.WheelDirs) > 0 {
		b.WriteString("# minions.connected, for the whole cluster\nwheel_dirs:\n")
		for _, dir := range o.WheelDirs {
			if strings.ContainsFunc(dir, unicode.IsControl) {
				return nil, fmt.Errorf("%w: wheel_dirs %q", ErrDropIn, dir)
			}
			fmt.Fprintf(&b, "  - %s\n", quoteYAML(dir))
		}
	}
	return []byte(b.String()), nil
}

const dropInHead = "# Written by saltclusterd"

// IsDropIn says whether a text is one that DropIn made, of this or another version, and not an administrator's.
func IsDropIn(text []byte) bool { return strings.HasPrefix(string(text), dropInHead+";") }

func quoteYAML(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// WriteDropIn writes the drop-in unless it is there already with the same content. The master must be restarted when
// it changed.
func WriteDropIn(path string, o DropInOptions) (changed bool, err error) {
	text, err := DropIn(o)
	if err != nil {
		return false, err
	}
	dir, name := filepath.Split(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false, fmt.Errorf("write drop-in: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, fmt.Errorf("write drop-in: %w", err)
	}
	defer root.Close()
	have, err := root.ReadFile(name)
	if err == nil && string(have) == string(text) {
		return false, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("write drop-in: %w", err)
	}
	f := newFile{name: name, data: text, mode: 0o644, owner: Unowned, sync: true}
	if err := f.writeIn(root); err != nil {
		return false, fmt.Errorf("write drop-in %s: %w", path, err)
	}
	return true, nil
}

// DropInPath is where the drop-in of this master belongs: in the directory of the first default_include pattern that
// ends in *.conf.
func (c *Config) DropInPath() (string, error) {
	for _, pattern := range c.Strings("default_include") {
		pattern = expandUser(pattern)
		if !filepath.IsAbs(pattern) {
			pattern = osJoin(filepath.Dir(c.Path), pattern)
		}
		if dir := filepath.Dir(pattern); filepath.Base(pattern) == "*.conf" && !hasMagic(dir) {
			return filepath.Join(dir, DropInName), nil
		}
	}
	return "", fmt.Errorf("%w: default_include of %s has no pattern that ends in *.conf", ErrDropIn, c.Path)
}
