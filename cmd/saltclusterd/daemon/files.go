package daemon

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/fileserve"
	"saltclusterd/sidecar/localmaster"
)

// buildFiles makes what answers requests for files without the local master.
func (s *service) buildFiles() {
	d := s.m.d
	s.files = fileserve.New(fileserve.Config{Logger: d.log, Registerer: d.reg})
	s.useFiles(d.master)
}

// useFiles follows a configuration of the master.
func (s *service) useFiles(master *localmaster.Config) {
	set, reason := s.fileSettings(master)
	if reason != "" {
		s.m.d.log.Info("requests for files are left to the salt-master", "reason", reason)
	}
	s.files.Use(set, reason)
	s.fileOptions = master
}

func (s *service) fileSettings(master *localmaster.Config) (*fileserve.Settings, string) {
	if s.m.d.cfg.Salt.NativeFiles == config.FilesOff {
		return nil, "the option cluster_native_files is off"
	}
	if reason := otherUser(master.User); reason != "" {
		return nil, reason
	}
	if master.Globbed("file_roots") {
		return nil, "file_roots has wildcards: in what order Salt has found the directories is not known"
	}
	set, reason := fileserve.Native(master, master.Version.Major)
	if set != nil {
		mounts, _ := os.ReadFile("/proc/self/mountinfo") // without it nothing is hidden, as outside of systemd
		set.Hidden = privateDirs(string(mounts))
	}
	return set, reason
}

// privateDirs are the temporary directories that systemd has made for this service alone (PrivateTmp=, which the generator takes away
// when a root is there, and not for what a link of a root leads to).
func privateDirs(mounts string) (dirs []string) {
	for line := range strings.Lines(mounts) {
		if f := strings.Fields(line); len(f) > 4 && (f[4] == "/tmp" || f[4] == "/var/tmp") && strings.Contains(f[3], "/systemd-private-") {
			dirs = append(dirs, f[4])
		}
	}
	return dirs
}

// otherUser says so when the master may read other files than this process.
func otherUser(name string) string {
	u, err := user.Lookup(name)
	if err != nil {
		return fmt.Sprintf("the account of the master's option user is not known: %v", err)
	}
	if u.Uid != strconv.Itoa(os.Geteuid()) {
		return fmt.Sprintf("the salt-master runs as %s, saltclusterd does not: they may read different files", name)
	}
	return ""
}

// lookAtFiles follows the master's configuration, which it reads when it starts.
func (s *service) lookAtFiles(now *localmaster.Config) {
	set, reason := s.fileSettings(now) // the site's own modules are no options
	native, before := s.files.Native()
	if native == (set != nil) && before == reason && fileserve.Same(now, s.fileOptions) {
		return
	}
	s.useFiles(now)
}

// servedFiles are the files while this node can vouch for them (sidecar.Files).
type servedFiles struct{ s *service }

// Takes implements sidecar.Files.
func (f servedFiles) Takes(cmd string) bool {
	return f.s.files.Takes(cmd) && !f.s.share.Hangs() && !f.s.m.d.migration.MasterOutdated()
}

// Reads implements sidecar.Files.
func (f servedFiles) Reads(cmd string, load []byte) bool { return f.s.files.Reads(cmd, load) }

// Answer implements sidecar.Files.
func (f servedFiles) Answer(ctx context.Context, cmd, minion string, load []byte, finish func([]byte)) error {
	return f.s.files.Answer(ctx, cmd, minion, load, finish)
}

// filesStatus describes who answers requests for files.
func (s *service) filesStatus() *adminapi.Files {
	ok, reason := s.files.Native()
	if !ok {
		return &adminapi.Files{Path: adminapi.PathMaster, Reason: reason}
	}
	out := &adminapi.Files{Path: adminapi.PathNative}
	if set := s.files.Settings(); set != nil && !set.Alone {
		out.Reason = "what roots does not have goes to the salt-master, for fileserver_backend names others"
	}
	return out
}
