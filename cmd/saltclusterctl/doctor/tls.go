package doctor

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/sidecar/edge/tlsconfig"
	"saltclusterd/sidecar/localmaster"
)

// TLS looks whether minions can use TLS by the master's option ssl, and who would be refused. It returns nothing where
// the option is off and no TLS is required. who is the user of saltclusterd.
func TLS(master *localmaster.Config, who Account, required bool, now time.Time) []Finding {
	const check = "tls"
	options, refused := tlsconfig.ReadOptions(master)
	var out []Finding
	add := func(found []localmaster.Finding, why string) {
		for _, f := range found {
			level := Warn
			if f.Fatal {
				level = Fail
			}
			out = append(out, Finding{Check: check, Level: level, Where: master.SetBy("ssl"), What: f.Message, Why: why, Next: f.Fix})
		}
	}
	add(refused, "minions with the option ssl cannot connect to this node")
	if options == nil && required && len(out) == 0 {
		return []Finding{{Check: check, Level: Fail, Where: "cluster_require_tls",
			What: "minions without TLS are refused, and the master has no option ssl",
			Why:  "no minion can connect to this node",
			Next: "set ssl in the master's configuration as docs/how-to/tls.md says, or cluster_require_tls: False"}}
	}
	if options == nil {
		return out
	}
	files := options.Files()
	for _, file := range files {
		out = append(out, readable(check, file, who)...)
	}
	loaded, err := options.Load()
	switch {
	case errors.Is(err, fs.ErrPermission):
		return append(out, skip(check, "", "run it as root to check the certificates: "+err.Error()))
	case err != nil:
		return append(out, Finding{Check: check, Level: Fail, Where: master.SetBy("ssl"), What: err.Error(),
			Why:  "minions with the option ssl cannot connect to this node, at the latest after the next start of saltclusterd",
			Next: "correct the file; it is read again within seconds"})
	}
	key := files[len(files)-1]
	if info, err := os.Stat(key); err == nil && info.Mode().Perm()&0o007 != 0 {
		out = append(out, Finding{Check: check, Level: Fail, Where: key,
			What: fmt.Sprintf("has mode %04o: every user of this host can read it", info.Mode().Perm()),
			Why:  "a user who has this key can impersonate a master", Next: "chmod o-rwx " + key})
	}
	add(loaded.Examine(now), "minions with the option ssl lose their connection, or cannot reconnect")
	if len(out) > 0 {
		return out
	}
	demand := map[tls.ClientAuthType]string{tls.NoClientCert: "minions need none",
		tls.VerifyClientCertIfGiven: "minions may have one", tls.RequireAndVerifyClientCert: "minions must have one"}
	return []Finding{ok(check, options.CertFile, fmt.Sprintf("is valid until %s; %s of their own",
		loaded.Leaf.NotAfter.UTC().Format(time.DateOnly), demand[options.ClientAuth]))}
}

// readable says that a user may not read a file, by owner and mode of the file and its directories. A file that is not
// there is found when it is loaded.
func readable(check, file string, who Account) []Finding {
	if who.UID == 0 {
		return nil
	}
	path, err := filepath.EvalSymlinks(file)
	if err != nil {
		return nil
	}
	need := fs.FileMode(0o4)
	for ; ; path, need = filepath.Dir(path), 0o1 {
		info, err := os.Stat(path)
		if err != nil {
			return nil
		}
		st, isUnix := info.Sys().(*syscall.Stat_t)
		if isUnix && !who.has(need, st, info.Mode().Perm()) && !hasACL(path) {
			return []Finding{{Check: check, Level: Fail, Where: file,
				What: fmt.Sprintf("cannot be read by the user %s: %s belongs to uid %d with mode %04o", who.Name, path, st.Uid,
					info.Mode().Perm()),
				Why:  "saltclusterd runs as that user: minions with the option ssl cannot connect to this node",
				Next: fmt.Sprintf("chgrp %s %s; chmod g+r %s, and g+x for its directories", who.mainGroup(), file, file)}}
		}
		if path == "/" || path == "." {
			return nil
		}
	}
}

// has says by owner and mode whether the user has the rights, given as those of others.
func (a Account) has(need fs.FileMode, st *syscall.Stat_t, mode fs.FileMode) bool {
	switch {
	case st.Uid == a.UID:
		need <<= 6
	case slices.Contains(a.GIDs, st.Gid):
		need <<= 3
	}
	return mode&need == need
}

func hasACL(path string) bool {
	n, err := unix.Getxattr(path, "system.posix_acl_access", nil)
	return err == nil && n > 0
}
