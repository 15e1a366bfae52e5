package localmaster

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"saltclusterd/sidecar/saltcrypt"
)

// ErrIdentity means that a key pair cannot be a master's identity.
var ErrIdentity = errors.New("localmaster: not a usable master key pair")

// InstallIdentity makes the cluster's key pair the master's own: master.pem (0400) and master.pub (0644) in pki_dir,
// or, on 3008, <id>.pem and <id>.pub with master.pem and master.pub as symlinks to them
// (salt/crypt.py:MasterKeys._setup_keys). masterPub may be empty: it follows from masterPEM. Nothing is touched when
// the master has the pair already; otherwise the former private key is kept beside as
// master.pem.saltclusterd-<timestamp>.bak (0400), whose path is returned. A running master must be restarted.
func InstallIdentity(cfg *Config, masterPEM, masterPub []byte) (changed bool, backup string, err error) {
	in, err := newIdentity(cfg, masterPEM, masterPub)
	if err != nil {
		return false, "", err
	}
	if err := os.MkdirAll(cfg.PkiDir, 0o700); err != nil {
		return false, "", fmt.Errorf("install identity: %w", err)
	}
	root, err := os.OpenRoot(cfg.PkiDir)
	if err != nil {
		return false, "", fmt.Errorf("install identity: %w", err)
	}
	defer root.Close()
	in.root = root
	changed, backup, err = in.installKeys()
	if err != nil {
		return changed, backup, fmt.Errorf("install identity in %s: %w", cfg.PkiDir, err)
	}
	return changed, backup, nil
}

// ReadIdentity returns the master's current key pair. Errors: os.ErrNotExist when the master has never started.
func ReadIdentity(cfg *Config) (masterPEM, masterPub []byte, err error) {
	stem := masterStem(cfg)
	if _, err := os.Stat(filepath.Join(cfg.PkiDir, stem+".pem")); errors.Is(err, fs.ErrNotExist) {
		stem = "master" // a 3008 master that has not moved its key yet
	}
	masterPEM, err = readLimited(filepath.Join(cfg.PkiDir, stem+".pem"))
	if err != nil {
		return nil, nil, fmt.Errorf("read identity: %w", err)
	}
	masterPub, err = readLimited(filepath.Join(cfg.PkiDir, stem+".pub"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("read identity: %w", err)
	}
	return masterPEM, masterPub, nil
}

// masterStem is the name, without ending, of the files the master loads its key from.
func masterStem(cfg *Config) string {
	if cfg.Version.Major >= 3008 {
		return strings.TrimSuffix(cfg.ID, "_master")
	}
	return "master"
}

type identity struct {
	dir   string
	root  *os.Root
	stem  string
	owner Owner
	pem   []byte
	key   *saltcrypt.MasterKey
	now   time.Time
}

func newIdentity(cfg *Config, masterPEM, masterPub []byte) (*identity, error) {
	key, err := saltcrypt.ParseMasterKey(masterPEM)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIdentity, err)
	}
	if len(masterPub) > 0 && saltcrypt.CleanKey(string(masterPub)) != key.PublicText() {
		return nil, fmt.Errorf("%w: the public key is not that of the private key", ErrIdentity)
	}
	stem := masterStem(cfg)
	if stem == "" || stem != filepath.Base(stem) || strings.HasPrefix(stem, ".") {
		return nil, fmt.Errorf("%w: the master's id %q cannot name a key file", ErrIdentity, cfg.ID)
	}
	owner, err := cfg.Owner()
	if err != nil {
		return nil, err
	}
	owner.GID = -1 // stock gives the user only
	return &identity{dir: cfg.PkiDir, stem: stem, owner: owner, pem: masterPEM, key: key, now: time.Now().UTC()}, nil
}

func (in *identity) installKeys() (changed bool, backup string, err error) {
	if in.stem == "master" {
		// A master that ran as 3008 once has symlinks here, and after an upgrade it would load what they point at.
		if target, ok := in.linkTarget("master.pem"); ok {
			in.stem = strings.TrimSuffix(target, ".pem")
		}
	}
	for _, name := range []string{in.stem + ".pem", "master.pem"} {
		b, err := in.backupKey(name)
		if err != nil {
			return changed, backup, err
		}
		if backup == "" {
			backup = b
		}
	}
	for _, step := range []func() (bool, error){in.putPrivate, in.putPublic, in.putLinks} {
		did, err := step()
		changed = changed || did
		if err != nil {
			return changed, backup, err
		}
	}
	return changed, backup, nil
}

// linkTarget returns the file of the same directory that name is a symlink to.
func (in *identity) linkTarget(name string) (string, bool) {
	target, err := in.root.Readlink(name)
	if err != nil {
		return "", false
	}
	base := filepath.Base(target)
	here, err := in.root.Lstat(base)
	if err != nil || !here.Mode().IsRegular() {
		return "", false
	}
	there, err := os.Stat(filepath.Join(in.dir, name))
	return base, err == nil && os.SameFile(here, there)
}

// backupKey keeps a private key that is about to be replaced. A file that is not a key at all is also kept.
func (in *identity) backupKey(name string) (string, error) {
	info, err := in.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return "", err // a symlink's target is kept under its own name
	}
	old, err := in.root.ReadFile(name)
	if err != nil || in.holdsKey(old) {
		return "", err
	}
	bak := name + ".saltclusterd-" + in.now.Format("20060102T150405.000000Z") + ".bak"
	f := newFile{name: bak, data: old, mode: 0o400, owner: in.owner, sync: true}
	if err := f.writeIn(in.root); err != nil {
		return "", fmt.Errorf("keep the former key: %w", err)
	}
	return filepath.Join(in.dir, bak), nil
}

// holdsKey reports whether a PEM text is the cluster's private key, however it is written.
func (in *identity) holdsKey(text []byte) bool {
	if bytes.Equal(text, in.pem) {
		return true
	}
	key, err := saltcrypt.ParseMasterKey(text)
	return err == nil && key.Public().Equal(in.key.Public())
}

func (in *identity) putPrivate() (bool, error) {
	name := in.stem + ".pem"
	if info, err := in.root.Lstat(name); err == nil && info.Mode().IsRegular() {
		if old, err := in.root.ReadFile(name); err == nil && in.holdsKey(old) {
			return false, nil
		}
	}
	f := newFile{name: name, data: in.pem, mode: 0o400, owner: in.owner, sync: true}
	return true, f.writeIn(in.root)
}

func (in *identity) putPublic() (bool, error) {
	name := in.stem + ".pub"
	if info, err := in.root.Lstat(name); err == nil && info.Mode().IsRegular() {
		old, err := in.root.ReadFile(name)
		if err == nil && saltcrypt.CleanKey(string(old)) == in.key.PublicText() {
			return false, nil
		}
	}
	f := newFile{name: name, data: []byte(in.key.PublicText() + "\n"), mode: 0o644, owner: in.owner, sync: true}
	return true, f.writeIn(in.root)
}

// putLinks makes master.pem and master.pub symlinks where the master's key has another name. A stock master writes the
// whole path into them; in a pki_dir that several masters share, perhaps each with a path of its own, only the name
// leads all of them there.
func (in *identity) putLinks() (changed bool, err error) {
	if in.stem == "master" {
		return false, nil
	}
	for _, ending := range []string{".pem", ".pub"} {
		name, target := "master"+ending, in.stem+ending
		at, led := in.linkTarget(name)
		led = led && at == target
		if text, err := in.root.Readlink(name); err == nil && led && text == target {
			continue
		}
		if err := putSymlink(in.root, name, target); err != nil {
			return changed, err
		}
		changed = changed || !led
	}
	return changed, syncDir(in.root)
}
