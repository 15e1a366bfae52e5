package doctor

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/saltcrypt"
)

// Path is a directory or file that saltclusterd works with.
type Path struct {
	Path   string
	Writes bool // it must be able to write there
	Secret bool // no other user may read there
}

// Permissions looks whether a user can do there what it must, by owner and mode; ACLs are not looked at.
func Permissions(who Account, paths []Path) []Finding {
	const check = "permissions"
	var out []Finding
	for _, p := range paths {
		info, err := os.Stat(p.Path)
		switch {
		case errors.Is(err, fs.ErrPermission):
			out = append(out, skip(check, p.Path, "run it as root to check this"))
			continue
		case errors.Is(err, fs.ErrNotExist):
			continue // it is made when it is needed
		case err != nil:
			out = append(out, skip(check, p.Path, "cannot be read: "+wording.Cause(err)))
			continue
		}
		st, isUnix := info.Sys().(*syscall.Stat_t)
		if !isUnix {
			continue
		}
		mode := info.Mode().Perm()
		if p.Writes && who.UID != 0 && !who.mayWrite(st, mode) {
			out = append(out, Finding{
				Check: check, Level: Fail, Where: p.Path,
				What: fmt.Sprintf("belongs to uid %d with mode %04o, and saltclusterd runs as uid %d", st.Uid, mode, who.UID),
				Why:  "the cluster's decisions do not reach this master's files (keys: Authentication denied, minions stay unaccepted here)",
				Next: fmt.Sprintf("run saltclusterd as the master's user, or: chown -R %d %s", who.UID, p.Path),
			})
		}
		if p.Secret && mode&0o007 != 0 {
			out = append(out, Finding{
				Check: check, Level: Fail, Where: p.Path,
				What: fmt.Sprintf("has mode %04o: every user of this host can read it", mode),
				Why:  "it contains keys: a user who has them can impersonate the master or this node",
				Next: "chmod o-rwx " + p.Path,
			})
		}
	}
	if len(out) == 0 {
		out = append(out, ok(check, "", fmt.Sprintf("uid %d can write all files and directories that it needs to", who.UID)))
	}
	return out
}

// maxKey bounds a key file, in bytes.
const maxKey = 64 << 10

func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxKey))
}

// Identity compares the master.pub that this host's master presents with the cluster's.
func Identity(path, cluster string) []Finding {
	return compareKey(path, cluster, Finding{
		Check: "identity", Level: Fail, What: "is not the cluster's master.pub",
		Why: "the salt-master has a different identity from the other nodes: minions stop with The master key has changed, " +
			"the salt master could have been subverted, or Invalid master key",
		Next: "systemctl restart saltclusterd, which installs the cluster's; then systemctl restart salt-master",
	})
}

// MinionsMaster compares the key that a minion on this host has pinned with the cluster's.
func MinionsMaster(path, cluster string) []Finding {
	return compareKey(path, cluster, Finding{
		Check: "identity", Level: Warn, What: "the minion of this host has stored a master.pub that is not the cluster's",
		Why:  "if the cluster is its master, it logs The master key has changed and does not start; after a move from another master, this affects every minion",
		Next: "if you know why: remove the file on the minion and restart it; or keep the old master's key as the cluster's identity (bootstrap on that master)",
	})
}

func compareKey(path, cluster string, other Finding) []Finding {
	raw, err := readSmall(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return []Finding{skip(other.Check, path, "cannot be read: "+wording.Cause(err))}
	}
	other.Where = path
	if saltcrypt.Fingerprint(string(raw)) == cluster {
		return []Finding{ok(other.Check, path, "is the cluster's key")}
	}
	return []Finding{other}
}

// newCertificate: the roster knows a node by its certificate, so with another one the node has to join again.
const newCertificate = "restore state_dir from a backup; or remove this node (saltclusterctl remove on another node), empty state_dir here, and join again"

// Certificate says whether the node's own certificate can be used; its dates mean nothing.
func Certificate(path string, now time.Time) []Finding {
	const check = "expiry"
	raw, err := readSmall(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return []Finding{skip(check, path, "cannot be read: "+wording.Cause(err))}
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return []Finding{{Check: check, Level: Fail, Where: path, What: "is not a certificate",
			Why:  "this node cannot communicate with the others",
			Next: newCertificate}}
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return []Finding{{Check: check, Level: Fail, Where: path, What: "cannot be read: " + err.Error(),
			Why:  "this node cannot communicate with the others",
			Next: newCertificate}}
	}
	if cert.NotAfter.Year() > 9000 && !now.Before(cert.NotBefore) {
		return []Finding{ok(check, path, "never expires; the member list decides which nodes belong")}
	}
	// Whoever reads this beside openssl x509 shall not take a node apart that works (gossip/peer:
	// TestDial_CertificateDates).
	return []Finding{ok(check, path,
		fmt.Sprintf("is dated %s to %s, which no node checks; the member list decides which nodes belong",
			cert.NotBefore.UTC().Format(time.DateOnly), cert.NotAfter.UTC().Format(time.DateOnly)))}
}
