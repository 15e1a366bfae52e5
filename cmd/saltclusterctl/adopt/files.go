package adopt

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"saltclusterd/cmd/saltclusterctl/doctor"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/sidecar/localmaster"
)

// Names of the files below saltclusterd.d; a site's own that sort behind them have the last word.
const (
	setupName  = "setup.conf"
	secretName = "setup-secret.conf"
)

const secretSize = 24 // random bytes

// dropIn makes the master's drop-in, and the configuration as it will be. Nothing is to be written where all is as it
// must be.
func (c *checks) dropIn() (after *localmaster.Config, files []File) {
	s := c.site
	foreign := s.DropInErr != nil || s.DropInText == nil || !localmaster.IsDropIn(s.DropInText)
	if isBehindNode(s.Master, c.node) && foreign {
		return s.Master, nil // it was written by hand
	}
	if s.DropInErr != nil {
		c.addFinding("drop-in", doctor.Fail, s.Master.Path, s.DropInErr.Error(), "the salt-master would not read a drop-in",
			"put 'default_include: master.d/*.conf' into "+s.Master.Path)
		return s.Master, nil
	}
	bare, err := s.withoutDropIn()
	if err != nil {
		c.addFinding("drop-in", doctor.Fail, s.Master.Path, err.Error(), "", "")
		return s.Master, nil
	}
	text, err := localmaster.DropIn(s.dropInOptions(bare, c.node))
	if err == nil && string(text) == string(s.DropInText) {
		return s.Master, nil
	}
	if s.DropInText != nil && !localmaster.IsDropIn(s.DropInText) {
		c.addFinding("drop-in", doctor.Fail, s.DropIn, "exists, was not written by saltclusterd, and does not set what saltclusterd needs", "",
			"move it to another directory, and run setup again")
		return s.Master, nil
	}
	if err == nil {
		after, err = localmaster.LoadConfigAfter(s.Master.Path, s.Master.Version, localmaster.Changes{s.DropIn: text})
	}
	if err != nil {
		c.addFinding("drop-in", doctor.Fail, s.DropIn, err.Error(), "", "")
		return s.Master, nil
	}
	return after, []File{{
		Path: s.DropIn, What: "the salt-master's drop-in: " + strings.Join(optionsIn(text), ", "), Text: string(text),
		text: text, mode: 0o644,
		owner: localmaster.Unowned, master: true,
	}}
}

// withoutDropIn is the master's configuration without a drop-in of ours.
func (s *Site) withoutDropIn() (*localmaster.Config, error) {
	if !localmaster.IsDropIn(s.DropInText) {
		return s.Master, nil
	}
	return localmaster.LoadConfigAfter(s.Master.Path, s.Master.Version, localmaster.Changes{s.DropIn: nil})
}

// dropInOptions are made from the configuration without the drop-in: the master's own settings are kept.
func (s *Site) dropInOptions(bare *localmaster.Config, node string) localmaster.DropInOptions {
	o := localmaster.DropInOptions{MasterID: node, Version: bare.Version, KeyDriver: bare.Text("keys.cache_driver")}
	if have := bare.Strings("wheel_dirs"); s.WheelDir != "" && !slices.Contains(have, s.WheelDir) {
		o.WheelDirs = append(slices.Clip(have), s.WheelDir)
	}
	if addr, ok := bare.InterfaceAddr(); ok && addr.IsLoopback() {
		o.Interface = bare.Interface
	}
	if have := bare.Strings("runner_dirs"); s.RunnerDir != "" && !slices.Contains(have, s.RunnerDir) {
		o.RunnerDirs = append(slices.Clip(have), s.RunnerDir)
	}
	o.MoveTransport, o.OnlyTransport = bare.Transport != "zeromq", bare.Bool("transport_opts")
	o.EndNative = setsNative(bare)
	return o
}

// isBehindNode says whether a master is as it must be behind the node.
func isBehindNode(m *localmaster.Config, node string) bool {
	addr, ok := m.InterfaceAddr()
	return ok && addr.IsLoopback() && m.MasterID == node
}

// optionsIn lists the options that a drop-in sets.
func optionsIn(text []byte) (names []string) {
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(line, ":"); ok && !strings.ContainsAny(line[:1], "# ") {
			names = append(names, name)
		}
	}
	return names
}

// ownFiles are what saltclusterd's configuration lacks.
func (s *Site) ownFiles(node, cluster string) []File {
	var files []File
	var b strings.Builder
	for _, o := range s.ownOptions(node, cluster) {
		if _, set := s.OwnSource[o.name]; !set {
			fmt.Fprintf(&b, "%s: %s\n", o.name, config.Flow(o.value))
		}
	}
	dir := config.DropInDir(s.Asked.Own)
	if text := b.String(); text != "" || s.OwnMissing {
		path, head := filepath.Join(dir,
			setupName), "# Written by saltclusterctl setup. "+s.Asked.Own+" lists every option with its default.\n"
		if s.OwnMissing {
			path, head = s.Asked.Own, "# Written by saltclusterctl setup. saltclusterctl config default prints every option with its default.\n"
		}
		files = append(files, File{
			Path: path, What: "saltclusterd's configuration: " + strings.Join(optionsIn([]byte(text)), ", "), Text: head + text,
			text: []byte(head + text), mode: 0o644,
			owner: localmaster.Unowned,
		})
	}
	if s.lacksSecret() && !s.isJoining() {
		files = append(files, s.secretFile(filepath.Join(dir, secretName)))
	}
	return files
}

func (s *Site) lacksSecret() bool {
	return !s.Own.Cluster.Secret.IsSet() && s.Own.Cluster.SecretFile == "" && s.Own.Cluster.JoinTokenFile == ""
}

// secretFile holds a new secret. saltclusterd, which runs as the master's user, must be able to read it.
func (s *Site) secretFile(path string) File {
	var raw [secretSize]byte
	_, _ = rand.Read(raw[:]) // never fails (crypto/rand)
	text := "# Written by saltclusterctl setup. It proves the right to join this cluster.\ncluster_secret: '" +
		base64.StdEncoding.EncodeToString(raw[:]) + "'\n"
	f := File{Path: path, What: "a new cluster_secret", Secret: true, text: []byte(text), mode: 0o600,
		owner: localmaster.Unowned}
	if o, err := s.Master.Owner(); err == nil && o.UID > 0 {
		f.owner, f.mode = localmaster.Owner{UID: 0, GID: o.GID}, 0o640
	}
	return f
}

type option struct {
	name  string
	value any
}

// ownOptions are what saltclusterd must know here; where all is as usual that is two names.
func (s *Site) ownOptions(node, cluster string) []option {
	m := s.Master
	out := []option{{"id", node}, {"cluster_id", cluster}}
	add := func(differs bool, name string, value any) {
		if differs {
			out = append(out, option{name, value})
		}
	}
	add(m.Path != s.Own.Salt.Config, "salt_config", m.Path)
	add(s.Command != s.Own.Salt.MasterCommand, "salt_master_command", s.Command)
	add(m.PublishPort != s.Own.Edge.PublishPort, "publish_port", m.PublishPort)
	add(m.RetPort != s.Own.Edge.RetPort, "ret_port", m.RetPort)
	if bare, err := s.withoutDropIn(); err == nil { // minions know the address that the master had
		addr, ok := bare.InterfaceAddr()
		add(ok && !addr.IsUnspecified() && !addr.IsLoopback(), "interface", []string{bare.Interface})
	}
	add(s.poolPort() != s.Own.Cluster.PoolPort, "cluster_pool_port", s.poolPort())
	add(s.isJoining() && s.lacksSecret(), "cluster_join_token_file", s.tokenFile())
	if root, err := filepath.Abs(m.RootDir); err == nil && root != "/" {
		add(true, "state_dir", filepath.Join(root, "var/lib/saltclusterd"))
		add(true, "run_dir", filepath.Join(root, "run/saltclusterd"))
	}
	return out
}
