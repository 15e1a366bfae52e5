package localmaster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"saltclusterd/sidecar/saltcrypt"
)

// What stands in the place of a digest: nothing can be said about it; it is too many, or too large.
const (
	unreadable = "?"
	tooMuch    = "!"
)

const (
	maxDigested = 1 << 20 // bytes that are read of one file
	maxDirFiles = 100     // files that are read of one directory or glob
	maxRead     = 500     // files that are read at once
	maxReadSize = 8 << 20 // bytes of these
)

// errTooMuch says that a reader has read all that it may.
var errTooMuch = errors.New("too much to read")

// boundedReader reads small files until they are too many: it is done again and again while minions are served.
type boundedReader struct {
	files int
	bytes int64
}

func newReader() *boundedReader { return &boundedReader{files: maxRead, bytes: maxReadSize} }

// readFile reads a regular file of at most so many bytes.
func (r *boundedReader) readFile(path string, most int64) ([]byte, error) {
	if r.files <= 0 || r.bytes <= 0 {
		return nil, errTooMuch
	}
	text, err := readSome(path, most)
	r.files--
	r.bytes -= int64(len(text))
	return text, err
}

// fileDigest is a digest of a file's content.
func (r *boundedReader) fileDigest(path string) string {
	text, err := r.readFile(path, maxDigested)
	switch {
	case os.IsNotExist(err):
		return ""
	case errors.Is(err, errTooMuch):
		return tooMuch
	case err != nil:
		return unreadable
	}
	return digestOf(text)
}

// signDigest is a digest of the public half of what the master signs its public key with, "" when it does not sign. A
// signature made beforehand is not compared: it may be another one of the same key.
func (r *boundedReader) signDigest(cfg *Config) string {
	if !cfg.Bool("master_sign_pubkey") {
		return ""
	}
	if cfg.Bool("master_use_pubkey_signature") {
		return unreadable
	}
	pem, err := r.readFile(filepath.Join(cfg.PkiDir, cfg.Text("master_sign_key_name")+".pem"), maxDigested)
	if err != nil {
		return unreadable // in a store of the master's, or not made yet
	}
	key, err := saltcrypt.ParseMasterKey(pem)
	if err != nil {
		return unreadable
	}
	return digestOf([]byte(key.PublicText()))
}

// dirDigest is a digest of the files of a directory.
func (r *boundedReader) dirDigest(dir string) string {
	entries, err := os.ReadDir(dir)
	switch {
	case os.IsNotExist(err):
		return ""
	case err != nil:
		return unreadable
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return r.digestAll(dir, names)
}

// servingModules are kinds of modules of the site's own that decide what minions and commands get. Others, such as
// engines, may be on one master on purpose.
var servingModules = []string{"auth", "fileserver", "modules", "pillar", "renderers", "returners", "runners", "sdb", "serializers",
	"tokens", "tops", "utils", "wheel"}

// modulesDigest is a digest of these modules, without those that packages bring along.
func (r *boundedReader) modulesDigest(cfg *Config) string {
	var all []string
	for _, kind := range servingModules {
		for _, dir := range ModuleDirs(cfg, "", kind) {
			switch sum := r.dirDigest(dir); sum {
			case "":
			case tooMuch, unreadable:
				return sum
			default:
				all = append(all, kind+" "+sum)
			}
		}
	}
	return digestOf([]byte(strings.Join(all, "\n")))
}

// globDigest is a digest of the files that a glob finds.
func (r *boundedReader) globDigest(glob string) string { return r.digestAll("", pyGlob(glob)) }

// digestAll is a digest of several files and their names; one that cannot be read is not among them.
func (r *boundedReader) digestAll(dir string, names []string) string {
	if len(names) > maxDirFiles {
		return tooMuch
	}
	var all []string
	for _, name := range names {
		switch sum := r.fileDigest(filepath.Join(dir, name)); sum {
		case tooMuch:
			return tooMuch
		case unreadable:
		default:
			all = append(all, name+" "+sum)
		}
	}
	return digestOf([]byte(strings.Join(all, "\n")))
}

// gpgKeys is a digest of which private keys a directory of gpg has: their files are named after them.
func gpgKeys(dir string) string {
	entries, err := os.ReadDir(filepath.Join(dir, "private-keys-v1.d"))
	switch {
	case os.IsNotExist(err):
		return ""
	case err != nil:
		return unreadable
	}
	var keys []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".key") {
			keys = append(keys, e.Name())
		}
	}
	return digestOf([]byte(strings.Join(keys, "\n")))
}

func optionDigest(v any) string {
	if !pyTrue(v) {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return unreadable
	}
	return digestOf(text)
}

func onOff(is bool) string {
	if is {
		return "on"
	}
	return ""
}

// digestOf is short, for many of them go into one message between nodes; nothing has none.
func digestOf(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
